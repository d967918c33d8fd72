/* Means and standard deviations from the columns in work->raw. */
#if LAPLACE
static int finish(int status, work *w, float *mean, float *std, float *epistemic)
#else
static int finish(int status, work *w, float *mean, float *std)
#endif
{
#if LAPLACE
    float squared;
#endif
#if NARROWED
    float kept[MODEL_OUTPUTS];
#endif
    unsigned k;
#if REFUSES_NAN
    if (status == MODEL_MISSING) {
        word nan;
        nan.bits = 0x7fc00000u;
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            mean[k] = std[k] = nan.value;
#if LAPLACE
            epistemic[k] = nan.value;
#endif
        }
        return status;
    }
#endif
#if LAPLACE
    squared = squared_size(w->laplace);
#endif
#if NARROWED
    narrow(w, kept);
#endif
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
#if LAPLACE
        const float s = model_spread[k] * root(VARIANCE(w->raw, k) + model_gain[k] * squared);
#elif NARROWED
        const float s = model_spread[k] * WIDTH(w->raw, k) * root(kept[k]);
#else
        const float s = model_spread[k] * WIDTH(w->raw, k);
#endif
#if SHIFTED
        mean[k] = LOCATION(w->raw, k) + model_shift[k] * s;
#else
        mean[k] = LOCATION(w->raw, k);
#endif
#if GUARD
        std[k] = status != MODEL_OK && s < model_fallback[k] ? model_fallback[k] : s;
#else
        std[k] = s;
#endif
#if LAPLACE
        epistemic[k] = model_epistemic[k] * root(squared);
#endif
    }
    return status;
}

#if LAPLACE
int model_predict(const float *x, float *mean, float *std, float *epistemic, void *scratch)
{
    work *w = scratch;
    int status = finish(network(x, w), w, mean, std, epistemic);
#if NOVELTY
    status |= unlike(status, model_surprise(x), std);
#endif
    return status;
}
#else
int model_predict(const float *x, float *mean, float *std, void *scratch)
{
    work *w = scratch;
    int status = finish(network(x, w), w, mean, std);
#if NOVELTY
    status |= unlike(status, model_surprise(x), std);
#endif
#if REFUSES
    status |= unanswerable(status, x, MODEL_INPUTS) | unsure(std);
#endif
    return status;
}
#endif
