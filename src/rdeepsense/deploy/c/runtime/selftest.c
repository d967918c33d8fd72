/* Checks every table bit by bit and the predictions for some rows; exits with the result. */
#include "model.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rows.h"

#include "predict_into.h"

typedef union {
    float value;
    uint32_t bits;
} word;

static union {
    float aligned;
    unsigned char bytes[MODEL_SCRATCH_BYTES];
} scratch;

static float out[PARTS][MODEL_OUTPUTS];

#if WINDOWS
#define LAST_RANGE (MODEL_CHANNELS - 1) /* of an input */
#else
#define LAST_RANGE (MODEL_INPUTS - 1)
#endif

static int failures;

static void expect(int good, const char *what)
{
    if (!good) {
        printf("FAILED: %s\n", what);
        ++failures;
    }
}

static uint32_t bits_of(float value)
{
    word w;
    w.value = value;
    return w.bits;
}

/* What is the matter with inputs alone: rows may be unsure, or unlike others, all the same. */
#define OF_INPUTS 7

static int predict(const float *x)
{
    return predict_into(x, out[0], MODEL_OUTPUTS, &scratch) & OF_INPUTS;
}

/* The sum of all numbers, each times a factor of its own. Any single change of a table changes
   this: every factor is odd, so it has an inverse. */
#define ADD(table, size, word_of)               \
    for (i = 0; i < (size); ++i, factor += 2) { \
        sum += word_of((table)[i]) * factor;    \
    }

static void check_tables(void)
{
    uint32_t sum = 0, factor = 1, i;
    ADD_TABLES
    expect(sum == CHECKSUM, "the tables hold the exported numbers");
}

static float distance(float a, float b)
{
    return a > b ? a - b : b - a;
}

static void check_row(int row)
{
    const int first = row * MODEL_OUTPUTS;
    int k;
    expect(predict(inputs + row * MODEL_INPUTS) == MODEL_OK, "the row is in range");
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
#if CLASSES
        expect(distance(out[0][k], expected_probs[first + k]) <= TOLERANCE, "probability");
#else
        const float mean = expected_mean[first + k], std = expected_std[first + k];
        const float size = mean > 0 ? mean : -mean;
        expect(distance(out[0][k], mean) <= TOLERANCE * std + 1e-6f * size, "mean");
        expect(distance(out[1][k], std) <= TOLERANCE * std, "std");
#endif
#if LAPLACE
        const float wanted = expected_epistemic[first + k];
        expect(distance(out[PARTS - 1][k], wanted) <= TOLERANCE * wanted, "epistemic");
#endif
    }
#if NOVELTY
    {
        const float *x = inputs + row * MODEL_INPUTS, wanted = expected_surprise[row];
        const float size = wanted > 0.0f ? wanted : -wanted;
        expect(distance(model_surprise(x), wanted) <= TOLERANCE * (1.0f + size), "surprise");
    }
#endif
}

#if LIVE
static model_state state;
static model_row waiting;

/* Before any label the mean is that of predict; a label draws it nearer, and NaN is refused. */
static void check_stream(float bad)
{
    float mean[MODEL_OUTPUTS], std[MODEL_OUTPUTS], low[MODEL_OUTPUTS], high[MODEL_OUTPUTS];
    float y[MODEL_OUTPUTS];
    int k;
    model_begin(&state);
    predict(inputs);
    model_live(&state, inputs, &waiting, mean, std, low, high, &scratch);
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        expect(mean[k] == out[0][k] && low[k] < mean[k] && mean[k] < high[k], "a row of a stream");
        y[k] = bad;
    }
    expect(model_observe(&state, &waiting, y) == MODEL_BAD_LABEL, "a label that is NaN is told");
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        y[k] = mean[k] + 2.0f * std[k];
    }
    expect(model_observe(&state, &waiting, y) == MODEL_OK, "a label is taken in");
    model_seal(&state);
    expect(model_check(&state) == MODEL_OK, "a sealed state is whole");
    ++state.labels;
    expect(model_check(&state) == MODEL_BAD_STATE, "a damaged state is told");
    --state.labels;
    model_live(&state, inputs, &waiting, mean, std, low, high, &scratch);
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        expect(mean[k] >= out[0][k] && mean[k] <= y[k], "a label draws the mean nearer");
    }
}
#endif

#if STREAMS
static model_window window;
static model_running running;

#if LIVE
/* A stream that learns on says of intervals what it says of their window. */
static void check_live_intervals(void)
{
    float said[2][4][MODEL_OUTPUTS];
    int t, i, k;
    model_begin_window(&window);
    model_live(&state, inputs, &waiting, said[0][0], said[0][1], said[0][2], said[0][3], &scratch);
    for (t = 0; t < MODEL_INTERVALS; ++t) {
        const float *x = inputs + t * MODEL_INTERVAL * MODEL_CHANNELS;
        model_live_interval(&state, &window, x, &waiting, said[1][0], said[1][1], said[1][2],
                            said[1][3], &scratch);
    }
    for (i = 0; i < 4; ++i) {
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            expect(said[0][i][k] == said[1][i][k], "intervals that learn on");
        }
    }
}
#endif

/* The intervals of a window one after the other give what the window gives, to the bit. */
static void check_intervals(void)
{
    float found[PARTS][MODEL_OUTPUTS];
    int t, k, told = MODEL_OK, carried = MODEL_OK;
    predict(inputs);
    model_begin_window(&window);
    model_begin_run(&running);
    for (t = 0; t < MODEL_INTERVALS; ++t) {
        const float *x = inputs + t * MODEL_INTERVAL * MODEL_CHANNELS;
#if CLASSES
        carried = model_run_interval(&running, x, found[0], &scratch);
        told = model_push_interval(&window, x, found[0], &scratch);
#else
        carried = model_run_interval(&running, x, found[0], found[1], &scratch);
        told = model_push_interval(&window, x, found[0], found[1], &scratch);
#endif
        expect(((told & MODEL_NOT_ENOUGH_DATA) == 0) == (t + 1 == MODEL_INTERVALS),
               "a window has all its intervals");
    }
    expect((carried & OF_INPUTS) == MODEL_OK, "a stream that goes on");
    expect(told == predict_into(inputs, out[0], MODEL_OUTPUTS, &scratch), "and what it is told");
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        expect(found[0][k] == out[0][k], "intervals give what their window gives");
    }
#if LIVE
    check_live_intervals();
#endif
}
#endif

#if SAMPLED
static model_stream stream;
static model_decision decision;

/* The samples of a window one after the other are decided as the window is, to the bit where the
   period is a whole number of microseconds. */
static void check_samples(void)
{
    const int64_t period = (int64_t)(1e6f / MODEL_RATE + 0.5f);
    int i, told = 0, decided = 0;
    predict(inputs);
    model_begin_stream(&stream);
    for (i = 0; i <= MODEL_SAMPLES; ++i) {
        const float *x = inputs + (i < MODEL_SAMPLES ? i : MODEL_SAMPLES - 1) * MODEL_CHANNELS;
        expect(model_push(&stream, i * period, x, &scratch) == MODEL_OK, "a sample is taken");
        while (model_decide(&stream, &decision, &scratch)) {
            told += decision.status == MODEL_NOT_ENOUGH_DATA;
            decided += (decision.status & ~24) == MODEL_OK; /* unsure and unlike others may be */
#if !STEPWISE || STEPWISE_EXACT
            if (decided == 1 && (float)period * MODEL_RATE == 1e6f) {
#if CLASSES
                expect(decision.probs[0] == out[0][0], "samples give what their window gives");
#else
                expect(decision.mean[0] == out[0][0], "samples give what their window gives");
#endif
                ++decided;
            }
#endif
        }
    }
    expect(told == 1, "a stream that begins has not enough data");
    expect(decided >= 1, "a window of samples is decided");
}
#endif

int main(void)
{
    static float x[MODEL_INPUTS];
    word nan;
    int i, row;
    check_tables();
    for (row = 0; row < ROWS; ++row) {
        check_row(row);
    }
    for (i = 0; i < MODEL_INPUTS; ++i) {
        x[i] = inputs[i];
    }
    x[MODEL_INPUTS - 1] = 3e38f;
#if GUARD && CODED
    expect(predict(x) ==
               (model_levels[MODEL_INPUTS - 1] > 0.0f ? MODEL_UNKNOWN_LEVEL : MODEL_OUT_OF_RANGE),
           "an input of 3e38 is out of range, or no level");
#elif !CODED
    expect(predict(x) == MODEL_OUT_OF_RANGE, "an input of 3e38 is out of range");
#endif
#if GUARD
    expect(model_flagged_input(x) == MODEL_INPUTS - 1, "and it is the last one");
#endif
#if GUARD && !CLASSES
    for (i = 0; i < MODEL_OUTPUTS; ++i) {
        expect(out[1][i] >= model_fallback[i], "std of a flagged row");
    }
#endif
    nan.bits = 0x7fc00000u;
    x[MODEL_INPUTS - 1] = nan.value;
#if REFUSES_NAN
    expect(predict(x) == MODEL_MISSING, "an input that is NaN is told");
#elif GUARD
    expect(predict(x) == (model_takes_nan[LAST_RANGE] ? MODEL_OK : MODEL_MISSING),
           "an input that is NaN counts as its mean, and is told if it never was");
#else
    expect(predict(x) == MODEL_OK, "an input that is NaN counts as its mean");
#endif
#if LIVE
    check_stream(nan.value);
#endif
#if STREAMS
    check_intervals();
#endif
#if SAMPLED
    check_samples();
#endif
    printf(failures ? "self-test failed\n" : "self-test passed\n");
    return failures ? 1 : 0;
}
