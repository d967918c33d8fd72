/* Observes TIMES labels of each hostile kind, and prints every number of the state after them. */
#include "model.h"

#include <stdio.h>

static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];
static model_state state;
static model_row row;
static uint32_t drawn = 1;

static float draw(void)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (float)(drawn >> 8) / 8388608.0f - 1.0f;
}

static float label(int kind, long time, float mean, float std)
{
    switch (kind) {
    case 0: /* what was predicted */
        return mean + std * draw();
    case 1:
        return mean + 90.0f * std;
    case 2: /* constant */
        return mean * 0.0f + 5.0f;
    case 3: /* alternating */
        return time % 2 ? mean + 90.0f * std : mean - 90.0f * std;
    default: /* one row over and over, its label absurd now and then */
        return time % 2 ? 3e38f : mean + 50.0f * std;
    }
}

int main(void)
{
    float x[MODEL_INPUTS] = {0}, y[MODEL_OUTPUTS];
    float mean[MODEL_OUTPUTS], std[MODEL_OUTPUTS], low[MODEL_OUTPUTS], high[MODEL_OUTPUTS];
    unsigned i, k;
    long time;
    int kind;
    for (kind = 0; kind < 5; ++kind) {
        const float *numbers = (const float *)(const void *)&state;
        model_begin(&state);
        for (time = 0; time < TIMES; ++time) {
            for (i = 0; i < MODEL_INPUTS && kind < 4; ++i) {
                x[i] = 3.0f * draw();
            }
            model_live(&state, x, &row, mean, std, low, high, scratch);
            for (k = 0; k < MODEL_OUTPUTS; ++k) {
                y[k] = label(kind, time, mean[k], std[k]);
                if (!(std[k] > 0.0f && low[k] <= mean[k] && mean[k] <= high[k])) {
                    fprintf(stderr, "kind %d, time %ld: std %g\n", kind, time, (double)std[k]);
                    return 1;
                }
            }
            switch (model_observe(&state, &row, y)) {
            case MODEL_OK:
            case MODEL_FAR_LABEL:
                break;
            default:
                return 2;
            }
        }
        for (i = 0; i < sizeof state / 4 - 5; ++i) {
            printf("%.9g\n", (double)numbers[i]);
        }
    }
    return 0;
}
