/* Reads a log of (microseconds, sample), pushes it and writes all decisions, each with the points
   that it is made of where the stream has them; then what was late, repeated and lost. Only after
   every PUSHES is asked for decisions. */
#include "model.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef PUSHES
#define PUSHES 1
#endif

static model_stream stream;
static model_decision decision;
static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];

static void put(const void *numbers, size_t size)
{
    fwrite(numbers, size, 1, stdout);
}

static void put_decision(void)
{
    int32_t label = 0, status = decision.status;
#if CLASSES
    label = decision.label;
#endif
    put(&decision.start, sizeof decision.start);
    put(&decision.end, sizeof decision.end);
    put(&status, sizeof status);
    put(&label, sizeof label);
#if CLASSES
    put(decision.probs, sizeof decision.probs);
    put(&decision.probability, sizeof decision.probability);
#else
    put(decision.mean, sizeof decision.mean);
    put(decision.std, sizeof decision.std);
    put(decision.low, sizeof decision.low);
    put(decision.high, sizeof decision.high);
#endif
}

static void ask(void)
{
    static float points[MODEL_SAMPLES][MODEL_CHANNELS];
    const size_t kept = sizeof stream.points < sizeof points ? sizeof stream.points : sizeof points;
    memcpy(points, stream.points, kept);
    while (model_decide(&stream, &decision, scratch)) {
        put_decision();
        put(points, sizeof points);
        memcpy(points, stream.points, kept);
    }
}

int main(void)
{
    int64_t time;
    float sample[MODEL_CHANNELS];
    uint32_t counts[3], pushes = 0;
    memset(&stream, 0xa5, sizeof stream); /* begin takes memory as it is */
    model_begin_stream(&stream);
    while (fread(&time, sizeof time, 1, stdin) && fread(sample, sizeof sample, 1, stdin)) {
        model_push(&stream, time, sample, scratch);
        if (++pushes % PUSHES == 0) {
            ask();
        }
    }
    counts[0] = stream.late;
    counts[1] = stream.repeated;
    counts[2] = stream.lost;
    put(counts, sizeof counts);
    return 0;
}
