/* From inputs to the columns of the last layer, in bytes. */

static const layer layers[] = {LAYER_TABLE};

typedef struct {
    int32_t sum[SUMS];
    float raw[COLUMNS];
#if ENCODED
    float wide[NETWORK_INPUTS]; /* what is read of a row */
#endif
#if EMBEDDED
    embedding embedded;
#endif
#if LIVE
    float step; /* what a byte of the last layer's inputs stands for, in their units */
#endif
    uint8_t byte[ROOM]; /* the inputs' high ones, then activations */
    union {
        uint8_t low[ROOM];        /* the inputs' low ones */
        uint16_t group[ROOM / 4]; /* of four activations: those that are not all zero */
    } room;
} work;
typedef char scratch_fits[sizeof(work) == MODEL_SCRATCH_BYTES ? 1 : -1];

/* The largest activation, or top. */
static float largest(const int32_t *restrict sum, const float *restrict factor, unsigned n,
                     float top)
{
    unsigned i = largest_lanes(sum, factor, n, &top);
    UNROLLED
    for (; i < n; ++i) {
        if (sum[i] > 0) {
            const float h = (float)sum[i] * factor[i];
            top = h > top ? h : top;
        }
    }
    return top;
}

/* ReLU, and the next layer's bytes, of which the largest is 255. Returns what a step of them
   stands for, beside the units that are in the factors. */
static float to_bytes(const layer *l, const int32_t *restrict sum, float step,
                      uint8_t *restrict byte)
{
    const float *restrict factor = l->factor;
    unsigned n = l->outputs, i;
    float top, per;
#if !defined(__arm__)
    if (n > ROOM) {
        n = ROOM; /* never, but without this gcc -O3 warns that byte may be too short */
    }
#endif
    top = largest(sum, factor, n, l->least / step);
    per = 510.0f / top; /* in halves, so that adding 1 and shifting rounds */
    UNROLLED
    for (i = byte_lanes(sum, factor, per, n, byte); i < n; ++i) {
        int32_t s = sum[i];
#if defined(__SSE2__)
        s = s > 0 ? s : 0;
#else
        if (s <= 0) {
            byte[i] = 0;
            continue;
        }
#endif
        byte[i] = (uint8_t)(((int32_t)((float)s * factor[i] * per) + 1) >> 1);
    }
    for (; i % 4 != 0; ++i) {
        byte[i] = 0;
    }
    return step * top / 255.0f;
}

/* Input i of the first layer, in halves of a step, so that adding 1 and shifting rounds. */
static void put(work *w, unsigned i, float halves)
{
    const uint32_t q = (uint32_t)((int32_t)halves + ZERO) >> 1;
    w->byte[i] = (uint8_t)(q >> 8);
    w->room.low[i] = (uint8_t)(q & 255u);
}

#if EMBEDDED
/* The embedding of input i, z standard deviations from its mean. */
static void put_embedding(work *w, unsigned i, float z)
{
    unsigned k;
    embed(i, z, &w->embedded);
    for (k = 0; k < EMBEDDING_WIDTH; ++k) {
        const float halves = w->embedded.value[k] * PER_STEP;
        put(w, NETWORK_INPUTS + i * EMBEDDING_WIDTH + k, halves < LIMIT ? halves : LIMIT);
    }
}
#endif

/* z moved into the range of inputs; flags what was not a number, and what was beyond it. Without a
   branch where many inputs can be read at once. */
static float in_reach(float z, uint32_t *flags)
{
    const uint32_t size = size_of(z), limit = size_of(LIMIT);
    const uint32_t nan = size > INFINITE, far = size > limit;
    word w;
#if !defined(__SSE2__)
    if (!far) {
        return z;
    }
#endif
    w.value = z;
    w.bits = far ? (w.bits & 0x80000000u) | limit : w.bits;
    w.bits = nan ? 0 : w.bits;
    *flags |= nan * MODEL_MISSING | (far & ~nan) * MODEL_OUT_OF_RANGE;
    return w.value;
}

#if GUARD && !ENCODED
#define READ_INPUT(i) known_input(x, i, &status)
#else
#define READ_INPUT(i) x[i]
#endif

#if !EMBEDDED
#ifdef WHOLE
#include "int8_read.h"
#endif
#endif
#ifndef ORDERED
#define read_lanes(x, n, w, flags, status) 0
#endif

/* What the first layer reads of a row. */
static int read_row(const float *x, work *w)
{
    int status = MODEL_OK;
    uint32_t beyond = 0;
    unsigned i;
#if ENCODED && GUARD || ENCODED && REFUSES_NAN
    for (i = 0; i < MODEL_INPUTS; ++i) {
#if GUARD
        status |= input_status(x, i);
#endif
#if REFUSES_NAN
        if (size_of(x[i]) > INFINITE) {
            return MODEL_MISSING;
        }
#endif
    }
#endif
#if ENCODED
    encode(x, w->wide);
#if GUARD && NUMBERED
    for (i = 0; (status & MODEL_OUT_OF_RANGE) && i < NUMBERS; ++i) {
        w->wide[i] = known_input(x, (unsigned)model_numbers[i], &status);
    }
#endif
    x = w->wide;
#endif
    for (i = read_lanes(x, NETWORK_INPUTS, w, &beyond, &status); i < NETWORK_INPUTS; ++i) {
#if EMBEDDED
        float z = (READ_INPUT(i) - model_centre[i]) * model_per_scale[i];
        put_embedding(w, i, z);
        z *= PER_STEP;
#else
        float z = (READ_INPUT(i) - model_centre[i]) * model_per_step[i];
#endif
        z = in_reach(z, &beyond);
        put(w, i, z);
    }
#if REFUSES_NAN
    if (beyond & MODEL_MISSING) {
        return MODEL_MISSING;
    }
#endif
    status |= (int)(beyond & MODEL_OUT_OF_RANGE);
#if EMBEDDED
    i += NETWORK_INPUTS * EMBEDDING_WIDTH;
#endif
    for (; i % 4 != 0; ++i) {
        w->byte[i] = w->room.low[i] = 0;
    }
    return status;
}

/* What layer l reads of the one before, and its biases; returns the step of what it reads. */
static float begin_layer(unsigned l, work *w, float step)
{
    const float *bias = layers[l].bias;
    unsigned i;
    float per;
    step = to_bytes(layers + l - 1, w->sum, step, w->byte);
    per = 1.0f / step;
    UNROLLED
    for (i = begin_lanes(bias, per, layers[l].outputs, w->sum); i < layers[l].outputs; ++i) {
        w->sum[i] = (int32_t)(bias[i] * per);
    }
    return step;
}

/* The columns of the last layer, in work->raw. */
static void end_network(work *w, float step)
{
    const layer *l = layers + LAYERS - 1;
    unsigned i = end_lanes(w->sum, l->factor, step, model_head_bias, COLUMNS, w->raw);
    for (; i < COLUMNS; ++i) {
        w->raw[i] = (float)w->sum[i] * (l->factor[i] * step) + model_head_bias[i];
    }
#if LIVE
    w->step = step;
#endif
}

static int network(const float *x, work *w)
{
    const int status = read_row(x, w);
    float step = 1.0f;
    unsigned l;
#if REFUSES_NAN
    if (status == MODEL_MISSING) {
        return status;
    }
#endif
    add_inputs(layers, w->byte, w->room.low, w->sum);
    for (l = 1; l < LAYERS; ++l) {
        step = begin_layer(l, w, step);
        add_products(layers + l, w->byte, w->room.group, w->sum);
    }
    end_network(w, step);
    return status;
}
