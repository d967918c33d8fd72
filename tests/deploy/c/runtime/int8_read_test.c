/* Inputs into bytes and sums into columns, by whatever lanes there are, against plain C: every bit.
   With -DREFUSES_NAN=0 some inputs may be missing; with -DGUARD=0 there are no ranges. */
#include "expect.h"

#ifndef REFUSES_NAN
#define REFUSES_NAN 1
#endif
#ifndef GUARD
#define GUARD 1
#endif
#define MODEL_OK 0
#define MODEL_MISSING 1
#define MODEL_OUT_OF_RANGE 2
#define MODEL_INPUTS 11 /* two times four, and some that are left */
#define NETWORK_INPUTS 11
#define ENCODED 0
#define CODED 0
#define INT8 1
#define CLASSES 0
#define EMBEDDED 0
#define USES_SOFTPLUS 0
#define USES_EXP 0
#define USES_SQRT 0
#define USES_SQUARE 0
#define LIVE 0
#define TAILS 0
#define WINDOWS 0
#define ROOM 12
#define SUMS 64
#define COLUMNS 6
#define MODEL_SCRATCH_BYTES (4 * SUMS + 4 * COLUMNS + 2 * ROOM)
#define LAYERS 1
#define LIMIT 60000.0f
#define ZERO 60001

static const float model_centre[] = {1, -2, 3, 0.5f, -0.25f, 7, 1, -1, 10, 100, 1e-3f};
static const float model_per_step[] = {100, 7, 1000, 3, 64, 1, 0.5f, 14000, 300, 10, 12345};
static const float model_head_bias[] = {0.25f, -3, 1e-3f, 0, 17, 1};
static const float bias_0[COLUMNS] = {0}, factor_0[] = {0.5f, 1e-3f, 7, 0.3f, 1e-6f, 1.25f};
static const int8_t weights_0[12 * COLUMNS + 256] = {3};
#define LAYER_TABLE                                   \
    {                                                 \
        weights_0, bias_0, factor_0, 0.0f, 3, COLUMNS \
    }

#if GUARD
static const float model_low[] = {-5, -5, 0, -5, -5, 0, -5, -5, -5, -5, 0};
static const float model_high[] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
#if !REFUSES_NAN
static const int8_t model_takes_nan[] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0};
#endif
unsigned model_flagged_input(const float *x);
#endif

#include "numbers.h"

#if GUARD
#include "guard.h"
#endif

#include "int8_kernels.h"

#include "int8_network.h"

/* Mostly a number within its range; else one of those at which mistakes are made. */
static float any_input(void)
{
    static const uint32_t odd[] = {
        0x7fc00000u, 0xffc00001u, 0x7f800000u, 0xff800000u, /* NaN and infinity of either sign */
        0x7f7fffffu, 0xff7fffffu, 0x00000001u, 0x80000001u, /* the largest and the smallest */
        0x00000000u, 0x80000000u, 0x40a00000u, 0xc0a00000u, /* the ends of ranges: 0, 5, -5 */
    };
    word w;
    if (draw(20) == 0) {
        w.bits = odd[draw(12)];
        return w.value;
    }
    return (float)draw(1000000) * (draw(50) ? 4e-6f : 1.0f) - (draw(8) ? 0.0f : 4.0f);
}

/* What input i is to the guard. */
static int told_of(unsigned i, float x)
{
#if GUARD
    if (size_of(x) > INFINITE) {
#if REFUSES_NAN
        return MODEL_MISSING;
#else
        return model_takes_nan[i] ? MODEL_OK : MODEL_MISSING;
#endif
    }
    return x < model_low[i] || x > model_high[i] ? MODEL_OUT_OF_RANGE : MODEL_OK;
#else
    (void)i;
    (void)x;
    return MODEL_OK;
#endif
}

static void test_rows(void)
{
    static work w;
    static float x[MODEL_INPUTS + 1];
    unsigned time, i;
    for (time = 0; time < 3000; ++time) {
        float *row = x + time % 2; /* not on a register's boundary, too */
        int wanted = MODEL_OK, missing = 0;
        uint32_t q[ROOM] = {0};
        for (i = 0; i < MODEL_INPUTS; ++i) {
            float z, read;
            row[i] = read = time % 4 ? any_input() : 0.5f;
#if GUARD
            if (told_of(i, row[i]) == MODEL_OUT_OF_RANGE) {
                read = row[i] > model_high[i] ? model_high[i] : model_low[i];
            }
#endif
            z = (read - model_centre[i]) * model_per_step[i];
            wanted |= told_of(i, row[i]);
            if (size_of(row[i]) > INFINITE) {
                missing = 1;
                z = 0.0f;
            } else if (z > LIMIT || z < -LIMIT) {
                wanted |= MODEL_OUT_OF_RANGE;
                z = z > 0.0f ? LIMIT : -LIMIT;
            }
            q[i] = (uint32_t)((int32_t)z + ZERO) / 2;
        }
        if (REFUSES_NAN && missing) {
            EXPECT(read_row(row, &w) == MODEL_MISSING);
            continue;
        }
        EXPECT(read_row(row, &w) == wanted);
        for (i = 0; i < ROOM; ++i) {
            EXPECT(w.byte[i] * 256u + w.room.low[i] == q[i]);
        }
    }
}

static void test_columns(void)
{
    static work w;
    unsigned time, i;
    for (time = 0; time < 300; ++time) {
        const float step = (float)draw(1000) * 1e-4f;
        for (i = 0; i < COLUMNS; ++i) {
            w.sum[i] = (int32_t)draw(20000000) - 10000000;
        }
        end_network(&w, step);
        for (i = 0; i < COLUMNS; ++i) {
            const float unit = factor_0[i] * step, product = (float)w.sum[i] * unit;
            EXPECT(w.raw[i] == product + model_head_bias[i]);
        }
    }
}

int main(void)
{
    test_rows();
    test_columns();
    (void)network;
    return failures != 0;
}
