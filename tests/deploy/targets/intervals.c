/* TIMES decisions of a model of windows in one WAY: 0 whole windows, 1 exact, 2 running. */
#include "model.h"

static float x[MODEL_INPUTS], probs[MODEL_OUTPUTS];
static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];
static model_window window;
static model_running running;

int main(void)
{
    int i, status = 0;
    for (i = 0; i < MODEL_INPUTS; ++i) {
        x[i] = (float)(i * 7 % 11) / 11.0f - 0.5f;
    }
    for (i = 0; i < TIMES; ++i) {
        window.seen = running.seen = MODEL_INTERVALS;
        status |= WAY == 0   ? model_predict(x, probs, scratch)
                  : WAY == 1 ? model_push_interval(&window, x, probs, scratch)
                             : model_run_interval(&running, x, probs, scratch);
    }
    return status;
}
