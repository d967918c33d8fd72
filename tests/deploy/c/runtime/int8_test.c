/* Layers of bytes against plain loops: every bit. */
#include "expect.h"

#define MODEL_OK 0
#define MODEL_MISSING 1
#define MODEL_OUT_OF_RANGE 2
unsigned model_flagged_input(const float *x);
#define MODEL_INPUTS 1
#define NETWORK_INPUTS 1
#define ENCODED 0
#define CODED 0
#define MODEL_SCRATCH_BYTES (4 * 192 + 4 + 2 * 76)
#define INT8 1
#define CLASSES 0
#define EMBEDDED 0
#define REFUSES_NAN 1
#define GUARD 1
#define USES_SOFTPLUS 0
#define USES_EXP 0
#define USES_SQRT 0
#define USES_SQUARE 0
#define LIVE 0
#define TAILS 0
#define ROOM 76
#define SUMS 192
#define COLUMNS 1
#define LAYERS 1
#define LIMIT 2000.0f
#define ZERO 2001

/* One layer of weight 3, of an input of 2 levels for each unit around 10: raw = 3 q / 2 + 0.25, as
   the bias takes the inputs' zero, level 1000, off the sums. */
static const float model_centre[] = {10.0f}, model_per_step[] = {4.0f}, model_head_bias[] = {0.25f};
static const float bias_0[] = {-3000.0f}, factor_0[] = {0.5f};
static const int8_t weights_0[4 + 256] = {3};
#define LAYER_TABLE                             \
    {                                           \
        weights_0, bias_0, factor_0, 0.0f, 1, 1 \
    }

static const float model_low[] = {-50.0f}, model_high[] = {50.0f};

#include "numbers.h"

#include "guard.h"

#include "int8_kernels.h"

#include "int8_network.h"

#define INPUTS 532 /* more than 128 groups: sums of 16 bits begin again */

static void test_products(void)
{
    static int8_t weight[152 * INPUTS], packed[152 * INPUTS + 256];
    static uint8_t x[INPUTS], high[INPUTS], low[INPUTS];
    static uint16_t room[INPUTS / 4];
    static int32_t found[SUMS], wanted[SUMS], numbers[SUMS];
    static float bias[SUMS];
    unsigned inputs, outputs, o, i, at;
    for (inputs = 1; inputs <= INPUTS; inputs += inputs < 10 ? 1 : inputs < 60 ? 11 : 467) {
        for (outputs = 1; outputs <= 152; outputs += outputs < 20 ? 1 : 19) {
            const unsigned groups = (inputs + 3) / 4;
            /* Zeros among them; none; and everything as large as it can be. */
            const unsigned zeros = outputs % 3 == 0, extreme = outputs % 3 == 1;
            layer l = {packed, bias, 0, 0.0f, 0, 0};
            l.groups = (uint16_t)groups;
            l.outputs = (uint16_t)outputs;
            for (i = 0; i < 4 * groups; ++i) {
                x[i] = (uint8_t)(i < inputs && !(zeros && draw(2)) ? draw(256) : 0);
                low[i] = (uint8_t)(i < inputs ? draw(256) : 0);
                if (extreme && i < inputs) {
                    x[i] = low[i] = 255;
                }
            }
            x[0] = 255;
            for (i = 0; i < 4 * groups; ++i) {
                high[i] = extreme ? x[i] / 3 : x[i]; /* sums fit 32 bits, as the export sees to */
            }
            if (zeros) {
                x[1] = (uint8_t)draw(8); /* on both sides of what 16 bits hold */
                for (i = 4; i < 8 && i < inputs; ++i) {
                    x[i] = 0; /* a group to skip */
                }
            }
            for (o = 0; o < outputs; ++o) {
                found[o] = wanted[o] = (int32_t)draw(1000000) - 500000;
                bias[o] = (float)found[o];
                numbers[o] = found[o];
                for (i = 0; i < 4 * groups; ++i) {
                    /* The extremes among them: 255 times 127 and -127 must not saturate. */
                    weight[o * 4 * groups + i] = (int8_t)(draw(4)   ? (int)draw(255) - 127
                                                          : draw(2) ? 127
                                                                    : -127);
                    if (extreme) {
                        weight[o * 4 * groups + i] = o % 2 ? 127 : -127;
                    }
                    wanted[o] += x[i] * weight[o * 4 * groups + i];
                    numbers[o] += (high[i] * 256 + low[i]) * weight[o * 4 * groups + i];
                }
            }
            /* Blocks of 64 outputs, in them groups of four inputs, in them output by output. */
            for (at = o = 0; o < outputs; o += 64) {
                const unsigned n = outputs - o < 64 ? outputs - o : 64;
                unsigned g, j;
                for (g = 0; g < groups; ++g) {
                    for (j = 0; j < n; ++j) {
                        for (i = 0; i < 4; ++i) {
                            packed[at++] = weight[(o + j) * 4 * groups + 4 * g + i];
                        }
                    }
                }
            }
            for (o = 0; o < SUMS; ++o) {
                found[o] = o < outputs ? found[o] : 0;
            }
            add_products(&l, x, room, found);
            for (o = 0; o < outputs; ++o) {
                EXPECT(found[o] == wanted[o]);
            }
            add_inputs(&l, high, low, found);
            for (o = 0; o < outputs; ++o) {
                EXPECT(found[o] == numbers[o]);
            }
        }
    }
    (void)room; /* not every processor skips */
}

/* The most that a sum can be: nothing between the products and it may be too narrow. */
static void test_the_largest_sums(void)
{
    static int8_t packed[20 * INPUTS + 256];
    static uint8_t x[INPUTS], low[INPUTS];
    static uint16_t room[INPUTS / 4];
    static int32_t found[SUMS];
    static float bias[SUMS];
    layer l = {packed, bias, 0, 0.0f, INPUTS / 4, 20};
    const int32_t most = 127 * INPUTS;
    unsigned i;
    for (i = 0; i < INPUTS; ++i) {
        x[i] = low[i] = 255;
    }
    for (i = 0; i < 20 * INPUTS; ++i) {
        packed[i] = i / 4 % 2 ? 127 : -127; /* every other output */
    }
    add_products(&l, x, room, found);
    for (i = 0; i < 20; ++i) {
        EXPECT(found[i] == (i % 2 ? 255 : -255) * most);
    }
    for (i = 0; i < INPUTS; ++i) {
        x[i] = 63; /* so that 32 bits hold the sums */
    }
    add_inputs(&l, x, low, found);
    for (i = 0; i < 20; ++i) {
        EXPECT(found[i] == (i % 2 ? 16383 : -16383) * most);
    }
    (void)room;
}

static void test_bytes_by_hand(void)
{
    const int32_t sum[] = {0, -5, 10, 20, 5};
    const float factor[] = {1.0f, 1.0f, 1.0f, 1.0f, 2.0f};
    const uint8_t wanted[] = {0, 0, 128, 255, 128, 0, 0, 0};
    uint8_t byte[8];
    layer l = {0, 0, 0, 0.0f, 0, 5};
    unsigned i;
    l.factor = factor;
    EXPECT(to_bytes(&l, sum, 1.0f, byte) == 20.0f / 255.0f);
    for (i = 0; i < 8; ++i) {
        EXPECT(byte[i] == wanted[i]); /* 10 / 20 * 255 = 127.5, rounded up; then fours are full */
    }
    /* The step is never smaller than least / 255: nothing fires beside it. */
    l.least = 20000.0f;
    EXPECT(to_bytes(&l, sum, 2.0f, byte) == 2.0f * 10000.0f / 255.0f);
    EXPECT(byte[3] == 1 && byte[2] == 0);
}

static void test_the_largest_counts_wherever_it_is(void)
{
    static int32_t sum[70];
    static float factor[70];
    unsigned n, i, at;
    for (n = 1; n <= 70; ++n) {
        for (at = 0; at < n; ++at) {
            for (i = 0; i < n; ++i) {
                sum[i] = -(int32_t)draw(1000);
                factor[i] = 0.5f;
            }
            EXPECT(largest(sum, factor, n, 0.25f) == 0.25f);
            sum[at] = 7;
            EXPECT(largest(sum, factor, n, 0.25f) == 3.5f);
        }
    }
}

static void test_network_by_hand(void)
{
    work w;
    word nan;
    float x = 10.0f;
    EXPECT(network(&x, &w) == MODEL_OK && w.raw[0] == 0.25f);
    x = 15.0f; /* ten levels above zero */
    EXPECT(network(&x, &w) == MODEL_OK && w.raw[0] == 15.25f);
    x = 15.2f; /* 10.4 levels, which are 10 */
    EXPECT(network(&x, &w) == MODEL_OK && w.raw[0] == 15.25f);
    x = -1e30f; /* is read as -50: -120 levels */
    EXPECT(network(&x, &w) == MODEL_OUT_OF_RANGE && w.raw[0] == -179.75f);
    nan.bits = 0x7fc00000u;
    EXPECT(network(&nan.value, &w) == MODEL_MISSING);
}

int main(void)
{
    test_products();
    test_the_largest_sums();
    test_bytes_by_hand();
    test_the_largest_counts_wherever_it_is();
    test_network_by_hand();
    return failures != 0;
}
