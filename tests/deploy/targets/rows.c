/* Predicts rows.h TIMES times and prints every number of the last time by its bits. */
#include "model.h"
#include "rows.h"

#include <stdint.h>
#include <stdio.h>

static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];
static union {
    float values[2][MODEL_OUTPUTS];
    uint32_t bits[2 * MODEL_OUTPUTS];
} out[ROWS];

int main(void)
{
    int time, row, k;
    for (time = 0; time < TIMES; ++time) {
        for (row = 0; row < ROWS; ++row) {
#ifdef CLASSES
            model_predict(rows[row], out[row].values[0], scratch);
#else
            model_predict(rows[row], out[row].values[0], out[row].values[1], scratch);
#endif
        }
    }
    for (row = 0; row < ROWS; ++row) {
        for (k = 0; k < 2 * MODEL_OUTPUTS; ++k) {
            printf("%08lx\n", (unsigned long)out[row].bits[k]);
        }
    }
    return 0;
}
