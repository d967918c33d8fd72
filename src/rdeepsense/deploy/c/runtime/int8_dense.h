/* sum += W x with add_block, of every group: to skip did not pay here. */

#define add_products(l, x, room, sum) add_all((l)->weight, x, (l)->groups, (l)->outputs, sum)
static void add_all(const int8_t *w, const uint8_t *x, unsigned groups, unsigned outputs,
                    int32_t *restrict sum)
{
    unsigned o;
    for (o = 0; o < outputs; o += BLOCK) {
        const unsigned n = block_of(outputs, o);
        add_block(w, x, groups, n, sum + o);
        w += 4 * groups * n;
    }
}

#if INT8
static void add_inputs(const layer *l, const uint8_t *high, const uint8_t *low,
                       int32_t *restrict sum)
{
    const float *bias = l->bias;
    unsigned i;
    UNROLLED
    for (i = begin_lanes(bias, 0.0f, l->outputs, sum); i < l->outputs; ++i) {
        sum[i] = (int32_t)(bias[i] * 0.0f); /* a plain 0 becomes a call of memset */
    }
    add_products(l, high, 0, sum);
    UNROLLED
    for (i = shift_lanes(bias, l->outputs, sum); i < l->outputs; ++i) {
        sum[i] = sum[i] * 256 + (int32_t)bias[i];
    }
    add_products(l, low, 0, sum);
}
#endif
