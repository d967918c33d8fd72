/* Rows that were stored at export, predicted here, beside what was expected of them. No printf of
   floats: many boards have none. */
#include "replay.h"

#include "switches.h"

#include "model.h"

#include <stddef.h>
#include <stdint.h>

#include "stored.h"

#if REPLAYED && CLASSES
#define PARTS 1
#elif REPLAYED
#define PARTS 2
#else
#include "predict_into.h"

#endif
#define LONGEST 192

static union {
    float aligned;
    unsigned char bytes[MODEL_SCRATCH_BYTES];
} scratch;

static float out[PARTS][MODEL_OUTPUTS];
static int status; /* of the row that is told */
static char text[LONGEST];
static unsigned end;

static void put(const char *word)
{
    while (*word != '\0' && end + 1 < LONGEST) {
        text[end++] = *word++;
    }
    text[end] = '\0';
}

static void put_whole(uint32_t number, unsigned least)
{
    char digits[11];
    unsigned at = sizeof digits;
    digits[--at] = '\0';
    while (at > 0 && (number > 0 || least > 0)) {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
        least -= least > 0;
    }
    put(digits + at);
}

/* With DIGITS behind the point, and SCALE their power of ten. */
static void put_number(float value)
{
    const float size = value < 0.0f ? -value : value;
    uint32_t whole, part;
    if (!(size < 4e9f)) {
        put("beyond");
        return;
    }
    whole = (uint32_t)size;
    part = (uint32_t)((size - (float)whole) * (float)SCALE + 0.5f);
    whole += part / SCALE;
    if (value < 0.0f) {
        put("-");
    }
    put_whole(whole, 1);
    if (DIGITS > 0) {
        put(".");
        put_whole(part % SCALE, DIGITS);
    }
}

static int differs(float a, float b, float most)
{
    const float apart = a > b ? a - b : b - a;
    return !(apart <= most);
}

static void begin_line(int row)
{
    end = 0;
    put("row ");
    put_whole((uint32_t)row, 1);
    put(": ");
}

/* What a firmware would abstain for; the prediction itself is as expected all the same. */
static void put_doubts(void)
{
#ifdef MODEL_UNSURE
    put(status & MODEL_UNSURE ? ", unsure" : "");
#endif
#ifdef MODEL_UNLIKE
    put(status & MODEL_UNLIKE ? ", unlike" : "");
#endif
}

#if CLASSES
static int likeliest(const float *probs)
{
    int k, best = 0;
    for (k = 1; k < MODEL_OUTPUTS; ++k) {
        best = probs[k] > probs[best] ? k : best;
    }
    return best;
}

static void put_class(const float *probs)
{
    const int best = likeliest(probs);
    put(names[best]);
    put(" ");
    put_number(probs[best]);
}

static int tell(int row, void (*line)(const char *text))
{
    const float *wanted = expected_probs + row * MODEL_OUTPUTS;
    int k, wrong = 0;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        wrong |= differs(out[0][k], wanted[k], TOLERANCE);
    }
    begin_line(row);
    put_class(out[0]);
    put(", expected ");
    put_class(wanted);
    put_doubts();
    line(text);
    return wrong;
}
#else
static void put_value(float mean, float std)
{
    put_number(mean);
    put(" +- ");
    put_number(std);
}

static int tell(int row, void (*line)(const char *text))
{
    int k, wrong = 0;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        const float mean = expected_mean[row * MODEL_OUTPUTS + k];
        const float std = expected_std[row * MODEL_OUTPUTS + k];
        const float size = mean > 0 ? mean : -mean;
        wrong |= differs(out[0][k], mean, TOLERANCE * std + 1e-6f * size);
        wrong |= differs(out[1][k], std, TOLERANCE * std);
        begin_line(row);
        put(names[k]);
        put(" ");
        put_value(out[0][k], out[1][k]);
        put(", expected ");
        put_value(mean, std);
        put_doubts();
        line(text);
    }
    return wrong;
}
#endif

#if REPLAYED
static model_stream stream;
static model_decision decision;

/* A window goes in sample by sample, as a sensor would give it, and is decided on at its end. */
static int predict(const float *x)
{
    int64_t t;
    int k, due = 0;
    model_begin_stream(&stream);
    for (t = 0; t < MODEL_SAMPLES; ++t) {
        /* rounded up, so that the last sample is not before the window's end */
        const int64_t now = (int64_t)((double)t * 1e6 / (double)MODEL_RATE + 0.999);
        if (model_push(&stream, now, x + t * MODEL_CHANNELS, &scratch) != MODEL_OK) {
            return 1;
        }
        while (model_decide(&stream, &decision, &scratch)) {
            due += (decision.status & MODEL_NOT_ENOUGH_DATA) == 0; /* of its beginning */
        }
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
#if CLASSES
        out[0][k] = decision.probs[k];
#else
        out[0][k] = decision.mean[k];
        out[1][k] = decision.std[k];
#endif
    }
    status = decision.status;
    return due != 1;
}
#else
static int predict(const float *x)
{
    status = predict_into(x, out[0], MODEL_OUTPUTS, &scratch);
    return 0;
}
#endif

int model_replay(void (*line)(const char *text))
{
    int row, wrong = 0;
    for (row = 0; row < ROWS; ++row) {
        const int failed = predict(rows + row * MODEL_INPUTS);
        wrong += tell(row, line) || failed || (status & (MODEL_MISSING | MODEL_OUT_OF_RANGE));
    }
    line(wrong > 0 ? "replay failed" : "replay passed");
    return wrong;
}

#ifndef ARDUINO
#include <stdio.h>

static void print_line(const char *text)
{
    puts(text);
}

#ifdef ESP_PLATFORM
void app_main(void);

void app_main(void)
{
    model_replay(print_line);
}
#else
int main(void)
{
    return model_replay(print_line) > 0;
}
#endif
#endif
