/* Recurrent layers: x has the products of the inputs already; states go on in h. */

#if HAS_GRU
static void gru(const weights *l, unsigned steps, const float *restrict x, float *restrict h,
                float *restrict y, list *t)
{
    const unsigned n = l->inputs;
    const float *restrict sum = t->sum;
    unsigned s, i;
    for (s = 0; s < steps; ++s, x += 3 * n, y += n) {
        linear(l, 1, h, 0, t->sum, 0, t);
        for (i = 0; i < n; ++i) {
            const float r = sigmoid_of(x[i] + sum[i]);
            const float u = sigmoid_of(x[n + i] + sum[n + i]);
            const float v = tanh_of(x[2 * n + i] + r * sum[2 * n + i]);
            y[i] = h[i] = v + u * (h[i] - v);
        }
    }
}
#endif

#if HAS_LSTM
/* h holds the states, then the cells. */
static void lstm(const weights *l, unsigned steps, const float *restrict x, float *restrict h,
                 float *restrict y, list *t)
{
    const unsigned n = l->inputs;
    const float *restrict sum = t->sum;
    float *cell = h + n;
    unsigned s, i;
    for (s = 0; s < steps; ++s, x += 4 * n, y += n) {
        linear(l, 1, h, 0, t->sum, 0, t);
        for (i = 0; i < n; ++i) {
            const float in = sigmoid_of(x[i] + sum[i]);
            const float keep = sigmoid_of(x[n + i] + sum[n + i]);
            const float fresh = tanh_of(x[2 * n + i] + sum[2 * n + i]);
            cell[i] = keep * cell[i] + in * fresh;
            y[i] = h[i] = sigmoid_of(x[3 * n + i] + sum[3 * n + i]) * tanh_of(cell[i]);
        }
    }
}
#endif
