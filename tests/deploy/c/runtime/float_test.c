/* Layers of singles and halves against plain loops, and a network worked out by hand. */
#include "expect.h"

#define MODEL_OK 0
#define MODEL_MISSING 1
#define MODEL_OUT_OF_RANGE 2
unsigned model_flagged_input(const float *x);
#define MODEL_INPUTS 2
#define NETWORK_INPUTS 2
#define ENCODED 0
#define CODED 0
#define MODEL_OUTPUTS 1
#define MODEL_REACH 1000.0f
#define MODEL_SCRATCH_BYTES (6 * 64 + 4 * 70)
#define INT8 0
#define SINGLES 1
#define HALVES 1
#define CLASSES 0
#define EMBEDDED 0
#define LAPLACE 0
#define LAPLACE_READS_INPUTS 0
#define LAPLACE_READS_HIDDEN 0
#define DROPOUT 0
#define REFUSES_NAN 1
#define GUARD 1
#define USES_SOFTPLUS 0
#define USES_EXP 0
#define USES_SQRT 0
#define USES_SQUARE 0
#define LIVE 0
#define NARROWED 0
#define TAILS 0
#define ROOM 64
#define SUMS 70
#define LAYERS 2
#define WIDEST 290 /* some blocks of outputs, and a rest */
#define PAD 16     /* of a table of halves */

/* h = max(0, W z + b) with z = (x - centre) / 2; the hidden layer is of singles, the last one of
   halves: 1, -2 and 0.5, with a gain of 4. */
static const float model_centre[] = {1.0f, -1.0f}, model_per_scale[] = {0.5f, 0.5f};
static const float first[] = {1.0f, -1.0f, 2.0f, 1.0f, 1.0f, 1.0f}, bias_0[] = {0.0f, 1.0f, -3.0f};
static const uint16_t last[3 + PAD] = {0x3c00, 0xc000, 0x3800};
static const float bias_1[] = {0.25f};
#define LAYER_TABLE                                                                       \
    {0, first, bias_0, 1.0f, 3}, {last, 0, bias_1, 4.0f, 1}, /* then, for lists alone: */ \
        {last, 0, bias_1, 1.0f, 61},                                                      \
    {                                                                                     \
        last, 0, bias_1, 4.0f, 1                                                          \
    }

static const float model_low[] = {-50.0f, -50.0f}, model_high[] = {50.0f, 50.0f};

#include "numbers.h"

#include "guard.h"

#include "float_kernels.h"

#include "float_network.h"

/* What a half float stands for. */
static double meant(unsigned bits)
{
    const int exponent = (int)(bits >> 10 & 31u), mantissa = (int)(bits & 1023u);
    const double size =
        exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    return bits & 0x8000u ? -size : size;
}

static void test_halves_are_widened_exactly(void)
{
    static const float one[4] = {1.0f};
    static const uint16_t index[4] = {0};
    uint16_t half[PAD + 1] = {0};
    layer l = {0, 0, 0, 1.0f, 1};
    unsigned bits;
    l.half = half;
    for (bits = 0; bits < 0x10000u; ++bits) {
        if ((bits >> 10 & 31u) < 31) { /* no weight is infinite or NaN */
            float found = 0.0f;
            half[0] = (uint16_t)bits;
            add_halves(&l, 0, 1, one, index, 4, &found);
            EXPECT((double)found == meant(bits));
        }
    }
}

/* Both kernels against sum_j += value_c W_cj in doubles, for every rest of their loops. */
static void test_kernels(void)
{
    static float single[64 * WIDEST], value[64], found[WIDEST + 1], whole[WIDEST];
    static uint16_t half[64 * WIDEST + PAD], index[64];
    unsigned n, count, i, c, j, kind;
    for (i = 0; i < 64 * WIDEST; ++i) {
        half[i] = (uint16_t)((draw(2) << 15) | (12 + draw(6)) << 10 | draw(1024));
        single[i] = (float)meant(half[i]);
    }
    for (n = 1; n <= WIDEST; n += n < 20 ? 1 : 7) {
        for (count = 0; count <= 40; count += 4) {
            for (kind = 0; kind < 2; ++kind) {
                layer l = {half, single, 0, 1.0f, 0};
                l.outputs = (uint16_t)n;
                for (c = 0; c < count; ++c) {
                    value[c] = (float)draw(1000) / 500.0f - 1.0f;
                    index[c] = (uint16_t)draw(64);
                }
                for (j = 0; j < n; ++j) {
                    found[j] = whole[j] = 0.5f;
                }
                found[n] = 7.0f;
                (kind ? add_singles : add_halves)(&l, 0, n, value, index, count, whole);
                /* In two parts, as of many rows. */
                j = n / 3;
                if (j > 0) {
                    (kind ? add_singles : add_halves)(&l, 0, j, value, index, count, found);
                }
                (kind ? add_singles : add_halves)(&l, j, n - j, value, index, count, found + j);
                EXPECT(found[n] == 7.0f);
                for (j = 0; j < n; ++j) {
                    double wanted = 0.5, size = 0.5;
                    for (c = 0; c < count; ++c) {
                        const double term = (double)value[c] * single[index[c] * n + j];
                        wanted += term;
                        size += fabs(term);
                    }
                    EXPECT(found[j] == whole[j]);
                    EXPECT(fabs(found[j] - wanted) <= 2e-6 * size);
                }
            }
        }
    }
}

/* What is listed of an output that is above zero, and of no other one. */
static void test_lists(void)
{
    work w;
    word nan;
    unsigned trial, count, at, i;
    nan.bits = 0x7fc00000u;
    for (trial = 0; trial < 300; ++trial) {
        const unsigned often = draw(5);
        for (i = 0; i < 61; ++i) {
            const float others[] = {0.0f, -0.0f, -1.0f, nan.value};
            w.raw[i] = draw(4) < often ? (float)(1 + draw(1000)) : others[draw(4)];
        }
        count = end_layer(2, &w);
        for (at = i = 0; i < 61; ++i) {
            if (w.raw[i] > 0.0f) {
                EXPECT(at < count && w.index[at] == i && w.value[at] == 4.0f * w.raw[i]);
                ++at;
            }
        }
        EXPECT(at == count);
    }
}

static void test_network_by_hand(void)
{
    work w;
    word nan;
    float x[2];
    /* z = (2, 3), h = (5, 2, 4), raw = 0.25 + 4 (5 - 2 * 2 + 0.5 * 4). */
    x[0] = 5.0f, x[1] = 5.0f;
    EXPECT(network(x, &w) == MODEL_OK);
    EXPECT(w.raw[0] == 12.25f);
    /* z = (0, -1) leaves h = (0, 0, 0). */
    x[0] = 1.0f, x[1] = -3.0f;
    EXPECT(network(x, &w) == MODEL_OK);
    EXPECT(w.raw[0] == 0.25f);
    /* Out of range, and so moved to its end, 50: z = (24.5, 0), h = (24.5, 0, 46). */
    x[0] = 59.0f, x[1] = -1.0f;
    EXPECT(network(x, &w) == MODEL_OUT_OF_RANGE && model_flagged_input(x) == 0);
    EXPECT(w.raw[0] == 0.25f + 4.0f * (24.5f + 0.5f * 46.0f));
    x[0] = 50.0f, x[1] = -50.0f;
    EXPECT(network(x, &w) == MODEL_OK && model_flagged_input(x) == MODEL_INPUTS);
    x[1] = -50.1f;
    EXPECT(network(x, &w) == MODEL_OUT_OF_RANGE && model_flagged_input(x) == 1);
    x[0] = 3e38f, x[1] = -1.0f;
    EXPECT(network(x, &w) == MODEL_OUT_OF_RANGE);
    EXPECT(w.raw[0] == 0.25f + 4.0f * (24.5f + 0.5f * 46.0f));
    nan.bits = 0x7fc00000u;
    x[0] = nan.value;
    EXPECT(network(x, &w) == MODEL_MISSING && model_flagged_input(x) == 0);
}

int main(void)
{
    test_halves_are_widened_exactly();
    test_kernels();
    test_lists();
    test_network_by_hand();
    return failures != 0;
}
