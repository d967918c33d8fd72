/* Whether a prediction is too unsure: beyond the threshold of a reject option. A row that has none
   is not. */
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

static int unsure(int status, const float *told)
{
#if REFUSES_NAN
    if (status & MODEL_MISSING) {
        return MODEL_OK;
    }
#else
    (void)status;
#endif
    return doubt(told) > REFUSED_ABOVE ? MODEL_UNSURE : MODEL_OK;
}
