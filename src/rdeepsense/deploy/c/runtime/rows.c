/* Predicts rows one after the other, with the status of each; returns all flags together. */
#include "model.h"

#include <stddef.h>
#include <stdint.h>

#include "predict_into.h"

int model_rows(const float *x, float *out, uint8_t *statuses, size_t rows);
int model_rows(const float *x, float *out, uint8_t *statuses, size_t rows)
{
    /* On the stack, so that any number of threads may call. */
    union {
        float aligned;
        char bytes[MODEL_SCRATCH_BYTES];
    } scratch;
    size_t r;
    int status, all = MODEL_OK;
    for (r = 0; r < rows; ++r) {
        status = predict_into(x + r * MODEL_INPUTS, out + r * MODEL_OUTPUTS, rows * MODEL_OUTPUTS,
                              &scratch);
        statuses[r] = (uint8_t)status;
        all |= status;
    }
    return all;
}
