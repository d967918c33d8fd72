/* DECISIONS of a stream of samples at the model's rate, each with all the pushes before it. */
#include "model.h"

static float sample[MODEL_CHANNELS];
static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];
static model_stream stream;
static model_decision decision;

int main(void)
{
    const int64_t period = (int64_t)(1e6f / MODEL_RATE + 0.5f);
    int i, c, decided = 0;
    model_begin_stream(&stream);
    for (i = 0; i < MODEL_SAMPLES + (DECISIONS - 1) * MODEL_HOP; ++i) {
        for (c = 0; c < MODEL_CHANNELS; ++c) {
            sample[c] = (float)((i + c) * 7 % 11) / 11.0f - 0.5f;
        }
        if (model_push(&stream, i * period, sample, scratch) != MODEL_OK) {
            return 1;
        }
        while (model_decide(&stream, &decision, scratch)) {
            decided += decision.status != MODEL_NOT_ENOUGH_DATA;
        }
    }
    return decided == DECISIONS ? 0 : 2;
}
