/* Predicts rows.h in one call and prints every number by its bits, as rows.c does. */
#include "model.h"
#include "rows.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef CLASSES
#define PARTS 1
#else
#define PARTS 2
#endif

int model_predict_many(const float *x, float *out, size_t apart, uint8_t *statuses, size_t count);

static union {
    float values[2 * ROWS * MODEL_OUTPUTS];
    uint32_t bits[2][ROWS][MODEL_OUTPUTS];
} out;

int main(void)
{
    uint8_t status[ROWS];
    int row, part, k;
    model_predict_many(rows[0], out.values, ROWS * MODEL_OUTPUTS, status, ROWS);
    for (row = 0; row < ROWS; ++row) {
        for (part = 0; part < 2; ++part) {
            for (k = 0; k < MODEL_OUTPUTS; ++k) {
                const uint32_t bits = part < PARTS ? out.bits[part][row][k] : 0;
                printf("%08lx\n", (unsigned long)bits);
            }
        }
    }
    return 0;
}
