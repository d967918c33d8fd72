
/* sum += W value, four columns of W at a time. */
static void add_columns(const layer *l, const float *restrict value,
                        const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    const unsigned n = l->outputs;
    unsigned c, j;
    for (c = 0; c < count; c += 4) {
        const float *restrict p = l->weight + (size_t)index[c] * n;
        const float *restrict q = l->weight + (size_t)index[c + 1] * n;
        const float *restrict r = l->weight + (size_t)index[c + 2] * n;
        const float *restrict s = l->weight + (size_t)index[c + 3] * n;
        const float a = value[c], b = value[c + 1], d = value[c + 2], e = value[c + 3];
        j = 0;
        do {
            sum[j] += (a * p[j] + b * q[j]) + (d * r[j] + e * s[j]);
        } while (++j < n);
    }
}
