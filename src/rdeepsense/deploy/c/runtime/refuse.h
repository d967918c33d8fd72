/* Whether a row is one that the reject option takes: it has no infinite input, lacks no value that it
   must have, and its score is at most the threshold. NaN never is, nor is infinity, by their bits:
   -ffast-math believes that there are none. */
static int unanswerable(int status, const float *x, unsigned count)
{
    unsigned i;
    if (status & REFUSED_STATUS) {
        return MODEL_UNSURE;
    }
    for (i = 0; status != MODEL_OK && i < count; ++i) {
        if (size_of(x[i]) == INFINITE) {
            return MODEL_UNSURE;
        }
    }
    return MODEL_OK;
}

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
