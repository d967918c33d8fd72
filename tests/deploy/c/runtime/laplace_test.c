/* The triangle of the Laplace part against the whole matrix. */
#include "expect.h"

#define LAPLACE_ROWS 9
static float model_root[LAPLACE_ROWS * (LAPLACE_ROWS + 1) / 2];

#include "laplace.h"

int main(void)
{
    double root[LAPLACE_ROWS][LAPLACE_ROWS] = {{0}}, wanted = 0;
    float sums[LAPLACE_ROWS] = {0}, phi[LAPLACE_ROWS];
    const uint16_t hidden[] = {0, 1, 2, 4}, inputs[] = {0, 2}; /* rows 0, 1, 2, 4; 5 and 7 */
    unsigned i, j, at = 0;
    for (i = 0; i < LAPLACE_ROWS; ++i) {
        phi[i] = (float)draw(100) / 10.0f;
        for (j = i; j < LAPLACE_ROWS; ++j) {
            root[i][j] = model_root[at++] = (float)draw(100) / 50.0f - 1.0f;
        }
    }
    {
        const float of_hidden[] = {phi[0], phi[1], phi[2], phi[4]}, of_inputs[] = {phi[5], phi[7]};
        phi[3] = phi[6] = phi[8] = 0.0f;
        add_rows(0, of_hidden, hidden, 4, sums);
        add_rows(5, of_inputs, inputs, 2, sums);
    }
    for (j = 0; j < LAPLACE_ROWS; ++j) {
        double sum = 0;
        for (i = 0; i < LAPLACE_ROWS; ++i) {
            sum += phi[i] * root[i][j];
        }
        EXPECT(fabs(sums[j] - sum) < 1e-5);
        wanted += sum * sum;
    }
    EXPECT(wanted > 1.0 && fabs(squared_size(sums) / wanted - 1.0) < 1e-6);
    return failures != 0;
}
