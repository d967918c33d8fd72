
/* The columns of the last layer, in work->sum. */
static int network(const float *x, work *w)
{
    int status = @NAME@_OK;
    unsigned count = 0, i, l;
    for (i = 0; i < @NAME@_INPUTS; ++i) {
        float z = (x[i] - @name@_centre[i]) * @name@_per_scale[i];
        if (size_of(z) > size_of(@NAME@_REACH)) {
            if (size_of(z) > INFINITE) {
                @on_nan@
            } else {
                z = z > 0.0f ? @NAME@_REACH : -@NAME@_REACH;
                status = @NAME@_OUT_OF_RANGE;
            }
        }
        w->value[count] = z@first_gain@;
        w->index[count] = (uint16_t)i;
        count += z != 0.0f;
    }
@doubt_inputs@    for (l = 0;; ++l) {
        const unsigned n = layers[l].outputs;
@doubt_hidden@        for (; count % 4 != 0; ++count) {
            w->value[count] = 0.0f;
            w->index[count] = 0;
        }
        i = 0;
        do {
            w->sum[i] = layers[l].bias[i];
        } while (++i < n);
        @add@(layers + l, w->value, w->index, count, w->sum);
        if (l + 1 == LAYERS) {
            return status;
        }
        /* ReLU made the others zero, and they add nothing: this is exact. */
        count = i = 0;
        do {
            const float h = w->sum[i];
            w->value[count] = h@gain@;
            w->index[count] = (uint16_t)i;
            count += @fires@;
        } while (++i < n);
    }
}
