/* Coordinates psi = B^T [h, 1] of the last hidden layer's numbers h. */

/* The smaller of two. */
static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* psi += value B_i; B has n columns and is lower triangular, row by row. */
static void add_turned(const float *table, unsigned n, unsigned i, float value, float *restrict psi)
{
    const unsigned full = smaller(i, n), count = smaller(i + 1, n);
    const float *restrict row = table + (size_t)full * (full + 1) / 2 + (size_t)(i - full) * n;
    unsigned j;
    for (j = 0; j < count; ++j) {
        psi[j] += value * row[j];
    }
}

/* psi of the row that was predicted last. */
static void turn(const work *w, const float *table, unsigned n, float *psi)
{
    unsigned i;
    for (i = 0; i < n; ++i) {
        psi[i] = 0.0f;
    }
#if WINDOWS
    for (i = 0; i < HIDDEN; ++i) {
        add_turned(table, n, i, w->hidden[i], psi);
    }
#elif INT8
    for (i = 0; i < HIDDEN; ++i) {
        if (w->byte[i] != 0) {
            add_turned(table, n, i, (float)w->byte[i] * w->step, psi);
        }
    }
#else
    for (i = 0; i < w->count; ++i) {
        add_turned(table, n, w->index[i], w->value[i], psi);
    }
#endif
    add_turned(table, n, HIDDEN, 1.0f, psi);
}

/* psi^T C psi over psi^T psi, from 0 to 1, for the upper triangle of C, row by row. */
static float left_open(const float *restrict c, unsigned n, const float *restrict psi)
{
    float total = 0.0f, length = 0.0f;
    unsigned i, j;
    for (i = 0; i < n; ++i) {
        float sum = 0.5f * *c++ * psi[i];
        for (j = i + 1; j < n; ++j, ++c) {
            sum += *c * psi[j];
        }
        total += sum * psi[i];
        length += psi[i] * psi[i];
    }
    total = length > 0.0f ? 2.0f * total / length : 1.0f;
    return total < 0.0f ? 0.0f : total > 1.0f ? 1.0f : total;
}
