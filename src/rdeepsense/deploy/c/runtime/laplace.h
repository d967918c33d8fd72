/* The Laplace approximation of the last layer: |[h, z, 1] root|, of the last hidden layer's numbers
   h and the scaled inputs z. */

/* sums += value root, of some rows; root is the upper triangle of a matrix, row by row. */
static void add_rows(unsigned first, const float *restrict value, const uint16_t *restrict index,
                     unsigned count, float *restrict sums)
{
    unsigned c, i, j;
    for (c = 0; c < count; ++c) {
        const float *restrict row;
        i = first + index[c];
        row = model_root + (size_t)i * (2 * LAPLACE_ROWS - 1 - i) / 2;
        for (j = i; j < LAPLACE_ROWS; ++j) {
            sums[j] += value[c] * row[j];
        }
    }
}

/* The square of how far a row is from what the training rows tell. */
static float squared_size(const float *sums)
{
    float total = 0.0f;
    unsigned j;
    for (j = 0; j < LAPLACE_ROWS; ++j) {
        total += sums[j] * sums[j];
    }
    return total;
}
