
/* ReLU, and the next layer's bytes, of which the largest is 255. Returns what a step of them
   stands for, beside the units that are in the factors. */
static float to_bytes(const layer *l, const int32_t *restrict sum, float step,
                      uint8_t *restrict byte)
{
    const float *restrict factor = l->factor;
    float top = l->least / step, per;
    unsigned n = l->outputs, i;
#if !defined(__arm__)
    if (n > ROOM) {
        n = ROOM; /* never, but without this gcc -O3 warns that byte may be too short */
    }
#endif
    for (i = 0; i < n; ++i) {
        const float h = (float)sum[i] * factor[i];
        top = h > top ? h : top;
    }
    per = 510.0f / top; /* in halves, so that adding 1 and shifting rounds */
    for (i = 0; i < n; ++i) {
        const float h = (float)sum[i] * factor[i];
        byte[i] = (uint8_t)(((int32_t)((h > 0.0f ? h : 0.0f) * per) + 1) >> 1);
    }
    for (; i % 4 != 0; ++i) {
        byte[i] = 0;
    }
    return step * top / 255.0f;
}

/* The columns of the last layer, in work->raw. */
static int network(const float *x, work *w)
{
    int status = @NAME@_OK;
    float step = 1.0f;
    unsigned i, l;
    for (i = 0; i < @NAME@_INPUTS; ++i) {
        /* In halves of a step, so that adding 1 and shifting rounds. */
        float z = (x[i] - @name@_centre[i]) * @name@_per_step[i];
        uint32_t q;
        if (size_of(z) > size_of(LIMIT)) {
            if (size_of(z) > INFINITE) {
                @on_nan@
            } else {
                z = z > 0.0f ? LIMIT : -LIMIT;
                status = @NAME@_OUT_OF_RANGE;
            }
        }
        q = (uint32_t)((int32_t)z + ZERO) >> 1;
        w->byte[i] = (uint8_t)(q >> 8);
        w->room.low[i] = (uint8_t)(q & 255u);
    }
    for (; i % 4 != 0; ++i) {
        w->byte[i] = w->room.low[i] = 0;
    }
    for (l = 0;; ++l) {
        const unsigned n = layers[l].outputs;
        const float *bias = layers[l].bias;
        const float per = 1.0f / step;
        for (i = 0; i < n; ++i) {
            w->sum[i] = l == 0 ? 0 : (int32_t)(bias[i] * per);
        }
        add_products(layers + l, w->byte, l == 0 ? 0 : w->room.group, w->sum);
        if (l == 0) {
            for (i = 0; i < n; ++i) {
                w->sum[i] = w->sum[i] * 256 + (int32_t)bias[i];
            }
            add_products(layers + l, w->room.low, 0, w->sum);
        }
        if (l + 1 == LAYERS) {
            break;
        }
        step = to_bytes(layers + l, w->sum, step, w->byte);
    }
    for (i = 0; i < layers[l].outputs; ++i) {
        w->raw[i] = (float)w->sum[i] * (layers[l].factor[i] * step) + @name@_head_bias[i];
    }
    return status;
}
