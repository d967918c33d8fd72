/* The model in a page's memory: a script writes numbers where these functions say, calls, and reads
   numbers. One instance is one model; a page that wants two makes two. */
#include "model.h"

#include <stddef.h>
#include <stdint.h>

#include "predict_into.h"

static union {
    float aligned;
    unsigned char bytes[MODEL_SCRATCH_BYTES];
} scratch;

static float x[MODEL_INPUTS];
static float out[4 * MODEL_OUTPUTS];

float *page_inputs(void);
float *page_inputs(void)
{
    return x;
}

float *page_outputs(void);
float *page_outputs(void)
{
    return out;
}

/* The parts of a prediction one after the other; returns its status. */
int page_predict(void);
int page_predict(void)
{
    return predict_into(x, out, MODEL_OUTPUTS, &scratch);
}

#if GUARD
unsigned page_flagged(void);
unsigned page_flagged(void)
{
    return model_flagged_input(x);
}
#endif

#if LIVE
static model_state state;
static model_row row;
static float truth[MODEL_OUTPUTS];

void page_begin(void);
void page_begin(void)
{
    model_begin(&state);
}

/* Mean, std, low and high, with what was learnt; the row waits for its label. */
int page_live(void);
int page_live(void)
{
    return model_live(&state, x, &row, out, out + MODEL_OUTPUTS, out + 2 * MODEL_OUTPUTS,
                      out + 3 * MODEL_OUTPUTS, &scratch);
}

float *page_truth(void);
float *page_truth(void)
{
    return truth;
}

int page_observe(void);
int page_observe(void)
{
    return model_observe(&state, &row, truth);
}

void *page_state(void);
void *page_state(void)
{
    return &state;
}

void page_seal(void);
void page_seal(void)
{
    model_seal(&state);
}

int page_check(void);
int page_check(void)
{
    return model_check(&state);
}

size_t page_state_bytes(void);
size_t page_state_bytes(void)
{
    return sizeof state;
}
#endif

#if PERSONAL
float *page_personal(void);
float *page_personal(void)
{
    return &scratch.aligned;
}
#endif

#if SENSES
static model_stream stream;
static model_decision decision;
static float sample[MODEL_CHANNELS];
static double times[2];

void page_begin_stream(void);
void page_begin_stream(void)
{
    model_begin_stream(&stream);
}

float *page_sample(void);
float *page_sample(void)
{
    return sample;
}

/* Scripts have no int64_t without ado; microseconds of a hundred years are whole doubles. */
int page_push(double microseconds);
int page_push(double microseconds)
{
    return model_push(&stream, (int64_t)microseconds, sample, &scratch);
}

double *page_times(void);
double *page_times(void)
{
    return times;
}

int page_decide(void);
int page_decide(void)
{
    unsigned k;
    if (!model_decide(&stream, &decision, &scratch)) {
        return -1;
    }
    times[0] = (double)decision.start;
    times[1] = (double)decision.end;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
#if CLASSES
        out[k] = decision.probs[k];
#else
        out[k] = decision.mean[k];
        out[MODEL_OUTPUTS + k] = decision.std[k];
        out[2 * MODEL_OUTPUTS + k] = decision.low[k];
        out[3 * MODEL_OUTPUTS + k] = decision.high[k];
#endif
    }
    return decision.status;
}

#if CLASSES
int page_label(void);
int page_label(void)
{
    return decision.label;
}

float page_probability(void);
float page_probability(void)
{
    return decision.probability;
}
#endif
#endif
