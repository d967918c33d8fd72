/* Probabilities from the columns in work->raw. */
#if LAPLACE
static int finish(int status, work *w, float *probs, float *epistemic)
#else
static int finish(int status, work *w, float *probs)
#endif
{
    float most, total = 0.0f;
#if LAPLACE
    float squared, middle = 0.0f;
#endif
    unsigned k;
#if REFUSES_NAN
    if (status == MODEL_MISSING) {
        word nan;
        nan.bits = 0x7fc00000u;
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            probs[k] = nan.value;
#if LAPLACE
            epistemic[k] = nan.value;
#endif
        }
        return status;
    }
#endif
#if LAPLACE
    squared = squared_size(w->laplace);
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        middle += w->raw[k] / MODEL_OUTPUTS;
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        w->raw[k] = (w->raw[k] - middle) / root(1.0f + model_gain[k] * squared);
        epistemic[k] = model_epistemic[k] * root(squared);
    }
#endif
    most = w->raw[0];
    for (k = 1; k < MODEL_OUTPUTS; ++k) {
        most = w->raw[k] > most ? w->raw[k] : most;
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        probs[k] = exp_of_minus(w->raw[k] - most);
        total += probs[k];
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        probs[k] /= total;
    }
#if GUARD
    for (k = 0; status != MODEL_OK && k < MODEL_OUTPUTS; ++k) {
        probs[k] = 0.5f * (probs[k] + model_fallback[k]);
    }
#endif
    return status;
}

#if LAPLACE
int model_predict(const float *x, float *probs, float *epistemic, void *scratch)
{
    work *w = scratch;
    int status = finish(network(x, w), w, probs, epistemic);
#if NOVELTY
    status |= unlike(status, model_surprise(x), probs);
#endif
    return status;
}
#else
int model_predict(const float *x, float *probs, void *scratch)
{
    work *w = scratch;
    int status = finish(network(x, w), w, probs);
#if NOVELTY
    status |= unlike(status, model_surprise(x), probs);
#endif
#if REFUSES
    status |= unanswerable(status, x, MODEL_INPUTS) | unsure(probs);
#endif
    return status;
}
#endif
