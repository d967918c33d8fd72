#include "model.h"

#include <math.h>

#if CLASSES
static int (*const members[])(const float *, float *, void *) = {MEMBERS};

int model_predict(const float *x, float *probs, void *scratch)
{
    float p[MODEL_OUTPUTS];
    int status = members[0](x, probs, scratch), i, k;
    for (i = 1; i < PASSES; ++i) {
        status |= members[i](x, p, scratch);
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            probs[k] += p[k];
        }
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        probs[k] /= PASSES;
    }
    return status;
}
#else
static int (*const members[])(const float *, float *, float *, void *) = {MEMBERS};

/* Measured from the first pass, so that little cancels. */
int model_predict(const float *x, float *mean, float *std, void *scratch)
{
    float first[MODEL_OUTPUTS], m[MODEL_OUTPUTS], s[MODEL_OUTPUTS];
    int status = members[0](x, first, s, scratch), i, k;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        mean[k] = 0.0f;
        std[k] = s[k] * s[k];
    }
    for (i = 1; i < PASSES; ++i) {
        status |= members[i](x, m, s, scratch);
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            const float d = m[k] - first[k];
            mean[k] += d;
            std[k] += s[k] * s[k] + d * d;
        }
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        const float d = mean[k] / PASSES, var = std[k] / PASSES - d * d;
        mean[k] = first[k] + d;
        std[k] = var > 0.0f ? sqrtf(var) : 0.0f;
    }
    return status;
}
#endif
