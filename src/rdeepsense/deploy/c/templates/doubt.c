
#define DOUBTS @doubts@

/* sums += value root, of some rows; root is the upper triangle of a matrix, row by row. */
static void add_rows(unsigned first, const float *restrict value, const uint16_t *restrict index,
                     unsigned count, float *restrict sums)
{
    unsigned c, i, j;
    for (c = 0; c < count; ++c) {
        const float *restrict row;
        i = first + index[c];
        row = @name@_root + (size_t)i * (2 * DOUBTS - 1 - i) / 2;
        for (j = i; j < DOUBTS; ++j) {
            sums[j] += value[c] * row[j];
        }
    }
}

/* The square of how far a row is from what the training rows tell. */
static float doubt_of(const float *sums)
{
    float total = 0.0f;
    unsigned j;
    for (j = 0; j < DOUBTS; ++j) {
        total += sums[j] * sums[j];
    }
    return total;
}
