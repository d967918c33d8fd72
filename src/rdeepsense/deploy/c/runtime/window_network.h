/* A network of windows: its steps one after the other, in buffers that they share. */

#include "weighted.h"

#if GATED
#include "recurrent.h"
#endif

#if SPECTRAL
#include "spectrum.h"
#endif

#include "moving.h"

typedef struct {
#if PERSONAL
    model_personal personal; /* first, so that the caller finds it */
#endif
    float raw[COLUMNS]; /* of the last layer */
    float z[READ];      /* inputs, scaled */
    float arena[ARENA]; /* what steps hand on */
#if GATED
    float states[STATES]; /* of recurrent layers */
#endif
#if STREAMS
    float found[FOUND]; /* what is kept of an interval */
    float top[TOP];     /* what the last recurrent layer makes of it */
    float pooled[TOP];
#endif
#if LIVE || NARROWED
    float hidden[HIDDEN]; /* what the last layer read */
#endif
    list lists;
} work;
typedef char scratch_fits[sizeof(work) == MODEL_SCRATCH_BYTES ? 1 : -1];

/* How many numbers lie from one to the next. */
#define BETWEEN (sizeof(work) / sizeof(float))

#include "steps.h"

/* Scales some numbers of a window, from the first channel on; one that is NaN counts as its
   mean. */
static int scale(const float *x, unsigned count, float *z)
{
    int status = MODEL_OK;
    unsigned i, c;
    for (i = 0, c = 0; i < count; ++i, c = c + 1 == CHANNELS ? 0 : c + 1) {
#if GUARD
        const float read = known_input(x, i, &status);
#else
        const float read = x[i];
#endif
        float value = (read - model_centre[c]) * model_per_scale[c] + model_offset[c];
        if (size_of(value) > size_of(MODEL_REACH)) {
            if (size_of(value) > INFINITE) {
#if REFUSES_NAN
                status |= MODEL_MISSING;
#endif
                value = 0.0f;
            } else {
                value = value > 0.0f ? MODEL_REACH : -MODEL_REACH;
                status |= MODEL_OUT_OF_RANGE;
            }
        }
        z[i] = value;
    }
    return status;
}

/* A window that lacks numbers has no prediction, whatever else is the matter. */
static int told(int status)
{
#if REFUSES_NAN
    return status & MODEL_MISSING ? MODEL_MISSING : status;
#else
    return status;
#endif
}

#if GATED
static void forget(float *states)
{
    unsigned i;
    for (i = 0; i < STATES; ++i) {
        states[i] = 0.0f;
    }
}
#endif

#if STREAMS
/* What is kept of an interval: spectrum, convolutions, products of the first recurrent layer. */
static int interval(const float *x, float *found, work *w)
{
    const int status = scale(x, READ, w->z);
    interval_steps(1, w->z, found, w);
#if REFUSES
    return status | unanswerable(status, x, READ);
#else
    return status;
#endif
}

/* How many intervals are computed at once from this one on. */
static unsigned some_of(unsigned first)
{
#ifdef ABREAST
    return MODEL_INTERVALS - first < ABREAST ? MODEL_INTERVALS - first : ABREAST;
#else
    (void)first;
    return 1;
#endif
}

/* The mean of the last states, or the last alone, in work->pooled. */
static void gather(const float *top, unsigned first, work *w)
{
    unsigned i;
    for (i = 0; i < TOP; ++i) {
        w->pooled[i] = POOLS_MEAN && !first ? w->pooled[i] + top[i] : top[i];
    }
}

#if PERSONAL
/* Notes what the last layer reads and says, and adds the change. */
static void personalise(work *w)
{
    unsigned i, k;
    for (i = 0; i < TOP; ++i) {
        w->personal.read[i] = w->pooled[i];
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        const float *change = w->personal.change[k];
        w->personal.logits[k] = w->raw[k];
        for (i = 0; i < TOP; ++i) {
            w->raw[k] += change[i] * w->pooled[i];
        }
        w->raw[k] += change[TOP];
    }
}
#endif

static void columns(work *w)
{
    unsigned i;
    for (i = 0; POOLS_MEAN && i < TOP; ++i) {
        w->pooled[i] /= (float)MODEL_INTERVALS;
    }
    last_steps(w->pooled, w->raw, w);
#if PERSONAL
    personalise(w);
#endif
}

/* As interval, of some of them. */
static int intervals(const float *x, unsigned rows, float *found, work *w)
{
#ifdef ABREAST
    work each[ABREAST];
    float z[ABREAST * READ];
#else
    work *each = w;
    float *z = w->z;
#endif
    const int status = scale(x, rows * READ, z);
    interval_steps(rows, z, found, each);
    (void)w;
    return status;
}

/* Goes on by what was kept of some intervals; so many of the window come before them. */
static void proceed(const float *found, unsigned rows, unsigned before, work *w)
{
    unsigned r;
#ifdef ABREAST
    work each[ABREAST];
    float top[ABREAST * TOP];
#else
    work *each = w;
    float *top = w->top;
#endif
    recurrent_steps(rows, found, top, w->states, each);
    for (r = 0; r < rows; ++r) {
        gather(top + r * TOP, before + r == 0, w);
    }
}

static int network(const float *x, work *w)
{
    int status = MODEL_OK;
    unsigned t, rows;
#ifdef ABREAST
    float found[ABREAST * FOUND];
#else
    float *found = w->found;
#endif
    forget(w->states);
    for (t = 0; t < MODEL_INTERVALS; t += rows) {
        rows = some_of(t);
        status |= intervals(x + (size_t)t * READ, rows, found, w);
        proceed(found, rows, t, w);
    }
    columns(w);
    return told(status);
}
#else
static int network(const float *x, work *w)
{
    const int status = scale(x, READ, w->z);
#if GATED
    forget(w->states);
    whole_steps(w->z, w->raw, w->states, w);
#else
    whole_steps(w->z, w->raw, w);
#endif
    return told(status);
}
#endif
