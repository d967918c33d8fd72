/* From inputs to the columns of the last layer, in floats. */

static const layer layers[] = {LAYER_TABLE};

typedef struct {
    float value[ROOM]; /* inputs of a layer that are not zero */
    float raw[SUMS];   /* its sums; of the last layer, the columns */
#if ENCODED
    float wide[NETWORK_INPUTS]; /* what is read of a row */
#endif
#if LAPLACE
    float laplace[LAPLACE_ROWS];
#endif
#if EMBEDDED
    embedding embedded;
#endif
#if LIVE || NARROWED
    uint32_t count; /* of the last layer's inputs that are not zero */
#endif
    uint16_t index[ROOM]; /* which inputs those are */
} work;
typedef char scratch_fits[sizeof(work) == MODEL_SCRATCH_BYTES ? 1 : -1];

#if DROPOUT
/* Whether a unit is kept. A linear congruential generator: no other costs as little, and here
   nothing but cost matters. */
static uint32_t drawn = 1;
static unsigned kept(void)
{
    drawn = drawn * 1664525u + 1013904223u;
    return drawn >= DROPPED;
}
#endif

#if GUARD && !ENCODED
#define READ_INPUT(i) known_input(x, i, &status)
#else
#define READ_INPUT(i) x[i]
#endif

/* Lists what the first layer reads of a row. */
static int read_row(const float *x, work *w, unsigned *listed)
{
    int status = MODEL_OK;
    unsigned count = 0, i;
#if ENCODED && GUARD || ENCODED && REFUSES_NAN
    for (i = 0; i < MODEL_INPUTS; ++i) {
#if GUARD
        status |= input_status(x, i);
#endif
#if REFUSES_NAN
        if (size_of(x[i]) > INFINITE) {
            *listed = 0;
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
    for (i = 0; i < NETWORK_INPUTS; ++i) {
        float z = (READ_INPUT(i) - model_centre[i]) * model_per_scale[i];
        if (size_of(z) > size_of(MODEL_REACH)) {
            if (size_of(z) > INFINITE) {
#if REFUSES_NAN
                *listed = 0;
                return MODEL_MISSING;
#else
                z = 0.0f;
#endif
            } else {
                z = z > 0.0f ? MODEL_REACH : -MODEL_REACH;
                status |= MODEL_OUT_OF_RANGE;
            }
        }
#if HALVES
        w->value[count] = z * layers[0].gain;
#else
        w->value[count] = z;
#endif
        w->index[count] = (uint16_t)i;
        count += z != 0.0f;
    }
#if LAPLACE
    for (i = 0; i < LAPLACE_ROWS; ++i) {
        w->laplace[i] = 0.0f;
    }
    w->laplace[LAPLACE_ROWS - 1] = model_root[LAPLACE_ROWS * (LAPLACE_ROWS + 1) / 2 - 1];
#endif
#if LAPLACE && LAPLACE_READS_INPUTS
    add_rows(LAPLACE_HIDDEN, w->value, w->index, count, w->laplace);
#endif
#if EMBEDDED
    for (i = 0; i < NETWORK_INPUTS; ++i) {
        unsigned k;
        embed(i, (READ_INPUT(i) - model_centre[i]) * model_per_scale[i], &w->embedded);
        for (k = 0; k < EMBEDDING_WIDTH; ++k) {
            const float e = w->embedded.value[k];
#if HALVES
            w->value[count] = e * layers[0].gain;
#else
            w->value[count] = e;
#endif
            w->index[count] = (uint16_t)(NETWORK_INPUTS + i * EMBEDDING_WIDTH + k);
            count += e > 0.0f;
        }
    }
#endif
    *listed = count;
    return status;
}

/* Makes ready for a layer: fills the list up to a multiple of four, and begins the sums. */
static unsigned begin_layer(unsigned l, work *w, unsigned count)
{
    unsigned i = 0;
#if LAPLACE && LAPLACE_READS_HIDDEN
    if (l + 1 == LAYERS) {
        add_rows(0, w->value, w->index, count, w->laplace);
    }
#endif
    for (; count % 4 != 0; ++count) {
        w->value[count] = 0.0f;
        w->index[count] = 0;
    }
    do {
        w->raw[i] = layers[l].bias[i];
    } while (++i < layers[l].outputs);
    return count;
}

/* Adds the products of a part of the list, for n outputs from first on. */
static void add_layer(unsigned l, unsigned first, unsigned n, work *w, unsigned from,
                      unsigned count)
{
    const float *value = w->value + from;
    const uint16_t *index = w->index + from;
#if HALVES && SINGLES
    if (layers[l].single == 0) {
        add_halves(layers + l, first, n, value, index, count, w->raw + first);
        return;
    }
#elif HALVES
    add_halves(layers + l, first, n, value, index, count, w->raw + first);
#endif
#if MANY && SINGLES
#ifdef PIECE_OUTPUTS
    if (n <= PIECE_OUTPUTS) {
        add_piece(layers[l].single + first, APART(layers[l].outputs), n, value, index, count,
                  w->raw + first);
        return;
    }
#endif
#endif
#if SINGLES
    add_singles(layers + l, first, n, value, index, count, w->raw + first);
#endif
}

#if !DROPOUT
#include "float_list.h"
#endif

/* Lists what the next layer reads. ReLU made the others zero, and they add nothing: this is exact.
 */
static unsigned end_layer(unsigned l, work *w)
{
    unsigned count = 0, i = 0;
#ifdef LISTS_SOME
    i = list_some(l, &w, 1, &count);
    if (i == layers[l].outputs) {
        return count;
    }
#endif
    do {
        const float h = w->raw[i];
#if HALVES
        w->value[count] = h * layers[l + 1].gain;
#else
        w->value[count] = h;
#endif
        w->index[count] = (uint16_t)i;
#if DROPOUT
        count += (h > 0.0f) & kept();
#else
        count += h > 0.0f;
#endif
    } while (++i < layers[l].outputs);
    return count;
}

/* The columns of the last layer, in work->raw. */
static int network(const float *x, work *w)
{
    unsigned count, l;
    const int status = read_row(x, w, &count);
#if REFUSES_NAN
    if (status == MODEL_MISSING) {
        return status;
    }
#endif
    for (l = 0;; ++l) {
        count = begin_layer(l, w, count);
        add_layer(l, 0, layers[l].outputs, w, 0, count);
        if (l + 1 == LAYERS) {
#if LIVE || NARROWED
            w->count = count;
#endif
            return status;
        }
        count = end_layer(l, w);
    }
}
