
int @name@_predict(const float *x, float *mean, float *std, @epistemic@void *scratch)
{
    work *w = scratch;
    const int status = network(x, w);
@doubt@    unsigned k;
@fill@@doubt_found@    for (k = 0; k < @NAME@_OUTPUTS; ++k) {
        const float s = @name@_spread[k] * @width@;
        mean[k] = w->@raw@[k]@shift@;
        std[k] = s;@doubt_out@
    }
    return status;
}
