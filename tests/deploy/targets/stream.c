/* Predicts the rows of stream.h one after the other, TIMES times, learns from each label with
   LEARNS, and prints every number of the last time by its bits. */
#include "model.h"
#include "stream.h"

#include <stdint.h>
#include <stdio.h>

static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];
static model_state state;
static model_row row;
static union {
    float values[4][MODEL_OUTPUTS];
    uint32_t bits[4 * MODEL_OUTPUTS];
} out[ROWS];

int main(void)
{
    int time, i, k;
    model_begin(&state);
    for (time = 0; time < TIMES; ++time) {
        for (i = 0; i < ROWS; ++i) {
            float(*said)[MODEL_OUTPUTS] = out[i].values;
#if LEARNS < 0
            model_predict(rows[i], said[0], said[1], scratch);
#else
            model_live(&state, rows[i], &row, said[0], said[1], said[2], said[3], scratch);
#endif
#if LEARNS > 0
            if (model_observe(&state, &row, labels[i]) != MODEL_OK) {
                return 1;
            }
#endif
        }
    }
    (void)row;
    for (i = 0; i < ROWS; ++i) {
        for (k = 0; k < 4 * MODEL_OUTPUTS; ++k) {
            printf("%08lx\n", (unsigned long)out[i].bits[k]);
        }
    }
    return 0;
}
