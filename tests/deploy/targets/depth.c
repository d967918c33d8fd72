/* Predicts the rows of rows.h and prints what a prediction takes of the stack, and how many bytes
   beyond the scratch memory it wrote. The memory is painted first; what lost its paint was used.
   This processor has nothing else to do: no interrupt uses its stack. */
#include "model.h"
#include "rows.h"

#include <stdint.h>
#include <stdio.h>

#define PAINT 0xa5a5a5a5u
#define DEEP 1024 /* words of stack that are painted */
#define SIZE ((MODEL_SCRATCH_BYTES + 3) / 4)
#define BEYOND 64 /* words behind the scratch memory */

static uint32_t scratch[SIZE + BEYOND];
static float out[3][MODEL_OUTPUTS];

/* The words below the frame of this function that predicting a row writes. */
__attribute__((noinline)) static unsigned depth(const float *x)
{
    volatile uint32_t *top, *at;
    __asm__ volatile("mov %0, sp" : "=r"(top));
    for (at = top - DEEP; at < top; ++at) {
        *at = PAINT;
    }
#if defined(CLASSES) && defined(EPISTEMIC)
    model_predict(x, out[0], out[1], scratch);
#elif defined(CLASSES)
    model_predict(x, out[0], scratch);
#elif defined(EPISTEMIC)
    model_predict(x, out[0], out[1], out[2], scratch);
#else
    model_predict(x, out[0], out[1], scratch);
#endif
    for (at = top - DEEP; at < top && *at == PAINT; ++at) {
    }
    return (unsigned)(top - at);
}

int main(void)
{
    unsigned row, k, most = 0, beyond = 0;
    for (k = SIZE; k < SIZE + BEYOND; ++k) {
        scratch[k] = PAINT;
    }
    for (row = 0; row < ROWS; ++row) {
        const unsigned found = depth(rows[row]);
        most = found > most ? found : most;
    }
    for (k = SIZE; k < SIZE + BEYOND; ++k) {
        beyond += scratch[k] != PAINT;
    }
    printf("%u %u\n", 4 * most, 4 * beyond);
    return 0;
}
