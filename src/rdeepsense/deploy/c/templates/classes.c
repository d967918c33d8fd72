
int @name@_predict(const float *x, float *probs, @epistemic@void *scratch)
{
    work *w = scratch;
    const int status = network(x, w);
    float most, total = 0.0f@doubt@;
    unsigned k;
@fill@@doubt_out@    most = w->@raw@[0];
    for (k = 1; k < @NAME@_OUTPUTS; ++k) {
        most = w->@raw@[k] > most ? w->@raw@[k] : most;
    }
    for (k = 0; k < @NAME@_OUTPUTS; ++k) {
        probs[k] = exp_of_minus(w->@raw@[k] - most);
        total += probs[k];
    }
    for (k = 0; k < @NAME@_OUTPUTS; ++k) {
        probs[k] /= total;
    }
    return status;
}
