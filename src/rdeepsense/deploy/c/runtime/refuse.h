/* Whether a prediction is too uncertain: its score is not at most the threshold of a reject option.
   NaN never is, nor is infinity, by their bits: -ffast-math believes that there are none. */
#if CLASSES
static float doubt(const float *probs)
{
    float most = probs[0];
    unsigned k;
    for (k = 1; k < MODEL_OUTPUTS; ++k) {
        most = probs[k] > most ? probs[k] : most;
    }
    return 1.0f - most;
}
#else
static float doubt(const float *std)
{
    float score = 0.0f;
    unsigned k;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        score += std[k] * model_refuse[k];
    }
    return score;
}
#endif

static int unsure(const float *told)
{
    const float score = doubt(told);
    return size_of(score) >= INFINITE || score > REFUSED_ABOVE ? MODEL_UNSURE : MODEL_OK;
}
