/* The seconds of each of count predictions of one row. */
#include "model.h"

#include <stddef.h>
#include <time.h>

#include "predict_into.h"

static union {
    float aligned;
    char bytes[MODEL_SCRATCH_BYTES];
} scratch;

void model_times(const float *x, float *out, double *seconds, size_t count);
void model_times(const float *x, float *out, double *seconds, size_t count)
{
    struct timespec begin, end;
    size_t i;
    for (i = 0; i < count; ++i) {
        clock_gettime(CLOCK_MONOTONIC, &begin);
        predict_into(x, out, MODEL_OUTPUTS, &scratch);
        clock_gettime(CLOCK_MONOTONIC, &end);
        seconds[i] = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec);
    }
}
