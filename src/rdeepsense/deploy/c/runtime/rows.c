/* Predicts rows one after the other; returns the worst status. */
#include "model.h"

#include <stddef.h>

#include "predict_into.h"

int model_rows(const float *x, float *out, size_t rows);
int model_rows(const float *x, float *out, size_t rows)
{
    /* On the stack, so that any number of threads may call. */
    union {
        float aligned;
        char bytes[MODEL_SCRATCH_BYTES];
    } scratch;
    size_t r;
    int status, worst = MODEL_OK;
    for (r = 0; r < rows; ++r) {
        status = predict_into(x + r * MODEL_INPUTS, out + r * MODEL_OUTPUTS, rows * MODEL_OUTPUTS,
                              &scratch);
        worst = status > worst ? status : worst;
    }
    return worst;
}
