/* Predicts rows one after the other; returns all flags together. */

#include "predict_into.h"

int model_predict_many(const float *x, float *out, size_t apart, uint8_t *statuses, size_t rows);
int model_predict_many(const float *x, float *out, size_t apart, uint8_t *statuses, size_t rows)
{
    work w; /* on the stack, so that any number of threads may call */
    size_t r;
    int status, all = MODEL_OK;
    for (r = 0; r < rows; ++r) {
        status = predict_into(x + r * MODEL_INPUTS, out + r * MODEL_OUTPUTS, apart, &w);
        statuses[r] = (uint8_t)status;
        all |= status;
    }
    return all;
}
