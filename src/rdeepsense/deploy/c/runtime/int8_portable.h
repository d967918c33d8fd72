/* add_block in plain C99. */

OUT_OF_LINE void add_block(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                           int32_t *restrict sum)
{
    unsigned g, j;
    for (g = 0; g < groups; ++g) {
        const int32_t a = x[4 * g], b = x[4 * g + 1], c = x[4 * g + 2], d = x[4 * g + 3];
        UNROLLED
        for (j = 0; j < n; ++j, w += 4) {
            sum[j] += a * w[0] + b * w[1] + c * w[2] + d * w[3];
        }
    }
}
