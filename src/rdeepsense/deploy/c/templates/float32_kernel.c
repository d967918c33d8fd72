
/* sum += W value, four or eight columns of W at a time: more need more registers, fewer more
   traffic to and from sum. */
static void @add_singles@(const layer *l, const float *restrict value,
                        const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    const unsigned n = l->outputs;
    unsigned c, j;
    c = 0;
#if defined(__SSE2__) || defined(__aarch64__)
    for (; c + 8 <= count; c += 8) {
        const float *restrict v = value + c;
        const float *restrict w0 = l->@single@ + (size_t)index[c + 0] * n;
        const float *restrict w1 = l->@single@ + (size_t)index[c + 1] * n;
        const float *restrict w2 = l->@single@ + (size_t)index[c + 2] * n;
        const float *restrict w3 = l->@single@ + (size_t)index[c + 3] * n;
        const float *restrict w4 = l->@single@ + (size_t)index[c + 4] * n;
        const float *restrict w5 = l->@single@ + (size_t)index[c + 5] * n;
        const float *restrict w6 = l->@single@ + (size_t)index[c + 6] * n;
        const float *restrict w7 = l->@single@ + (size_t)index[c + 7] * n;
        const float v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3],
                    v4 = v[4], v5 = v[5], v6 = v[6], v7 = v[7];
        j = 0;
        do {
            const float first = (v0 * w0[j] + v1 * w1[j]) + (v2 * w2[j] + v3 * w3[j]);
            const float second = (v4 * w4[j] + v5 * w5[j]) + (v6 * w6[j] + v7 * w7[j]);
            sum[j] += first + second;
        } while (++j < n);
    }
#endif
    for (; c < count; c += 4) {
        const float *restrict p = l->@single@ + (size_t)index[c] * n;
        const float *restrict q = l->@single@ + (size_t)index[c + 1] * n;
        const float *restrict r = l->@single@ + (size_t)index[c + 2] * n;
        const float *restrict s = l->@single@ + (size_t)index[c + 3] * n;
        const float a = value[c], b = value[c + 1], d = value[c + 2], e = value[c + 3];
        j = 0;
        do {
            sum[j] += (a * p[j] + b * q[j]) + (d * r[j] + e * s[j]);
        } while (++j < n);
    }
}
