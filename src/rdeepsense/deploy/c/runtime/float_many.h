/* Many rows in floats: piece by piece of a layer's weights, which stays near for all rows. The sums
   of a row are added in the order of one row alone, so its numbers are the same to the bit. */
#if !SINGLES
#ifdef STRIP
#define PIECE_OUTPUTS (STRIP * STRIPS)
#endif
#endif
#ifndef PIECE_OUTPUTS
#define PIECE_OUTPUTS 64
#endif
#define PIECE_INPUTS 48 /* of a row's list */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

#ifdef FOUR_ROWS
/* Whether a layer's weights are floats. */
static int is_single(unsigned l)
{
#if HALVES
    return layers[l].single != 0;
#else
    (void)l;
    return 1;
#endif
}

/* Adds a layer of few outputs, four rows at a time; returns for how many rows. */
static unsigned add_narrow_layer(unsigned l, work *w, unsigned rows, const unsigned *count)
{
    const unsigned n = layers[l].outputs;
    unsigned done, r;
    if (n > SIXTEEN || !is_single(l)) {
        return 0;
    }
    for (done = 0; done + FOUR_ROWS <= rows; done += FOUR_ROWS) {
        unsigned all = count[done];
        for (r = done; r < done + FOUR_ROWS; ++r) {
            all = least(all, count[r]);
        }
        add_narrow(layers[l].single, APART(n), n, w[done].value, w[done].index, all, sizeof(work),
                   w[done].raw);
        for (r = done; r < done + FOUR_ROWS; ++r) {
            add_layer(l, 0, n, w + r, all, count[r] - all);
        }
    }
    return done;
}
#ifdef LISTS_SOME
#define PAIRS
#endif
#endif

#ifdef PAIRS
#define MASKED ROOM
#include "pairs.h"

/* Pairs neighbours whose inputs are listed alike: most often no input is zero. */
static void pair_inputs(const work *w, unsigned rows, const unsigned *count, unsigned *partner)
{
    const int wide = is_single(0) && layers[0].outputs > SIXTEEN;
    unsigned i, r;
    for (r = 0; r < rows; ++r) {
        partner[r] = r;
    }
    for (r = 0; wide && r + 2 <= rows; r += 2) {
        unsigned differ = count[r] != count[r + 1];
        for (i = 0; i < count[r]; ++i) {
            differ |= w[r].index[i] != w[r + 1].index[i];
        }
        if (!differ) {
            partner[r] = r + 1;
            partner[r + 1] = ROWS;
        }
    }
}

/* Which of sixteen numbers are above zero. */
#if defined(__AVX512F__)
static unsigned some_of_sixteen(const float *p)
{
    return above_zero(_mm512_loadu_ps(p));
}
#else
static unsigned some_of_eight(const float *p)
{
    const __m256 above = _mm256_cmp_ps(_mm256_loadu_ps(p), _mm256_setzero_ps(), _CMP_GT_OQ);
    return (unsigned)_mm256_movemask_ps(above);
}

static unsigned some_of_sixteen(const float *p)
{
    return some_of_eight(p) | some_of_eight(p + 8) << 8;
}
#endif

/* The outputs of a layer that are above zero. */
static void mask_of(unsigned l, const work *w, mask *m)
{
    const unsigned outputs = layers[l].outputs;
    unsigned i, k;
    for (k = 0; k < MASK; ++k) {
        m->bits[k] = 0;
    }
    for (i = 0; i + 16 <= outputs; i += 16) {
        m->bits[i / 64] |= (uint64_t)some_of_sixteen(w->raw + i) << i % 64;
    }
    for (; i < outputs; ++i) {
        m->bits[i / 64] |= (uint64_t)(w->raw[i] > 0.0f) << i % 64;
    }
    for (m->count = k = 0; k < MASK; ++k) {
        m->count += count_of(m->bits[k]);
    }
}

/* Makes one list of what two rows read next; returns its length. */
static unsigned end_both(unsigned l, work *a, work *b)
{
    work *const both[2] = {a, b};
    unsigned count = 0, r, i = list_some(l, both, 2, &count);
    for (; i < layers[l].outputs; ++i) {
        for (r = 0; r < 2; ++r) {
            const float h = both[r]->raw[i];
#if HALVES
            both[r]->value[count] = h > 0.0f ? h * layers[l + 1].gain : 0.0f;
#else
            both[r]->value[count] = h > 0.0f ? h : 0.0f;
#endif
            both[r]->index[count] = (uint16_t)i;
        }
        count += (a->raw[i] > 0.0f) | (b->raw[i] > 0.0f);
    }
    return count;
}

/* Lists what the rows read next, in pairs where that pays. */
static void end_pairs(unsigned l, work *w, unsigned rows, unsigned *count, unsigned *partner)
{
    const int wide = is_single(l + 1) && layers[l + 1].outputs > SIXTEEN;
    mask of[ROWS];
    unsigned r;
    for (r = 0; r < rows; ++r) {
        partner[r] = r;
        if (wide) {
            mask_of(l, w + r, of + r);
        }
    }
    if (wide) {
        pair_up(of, rows, (layers[l].outputs + 63) / 64, partner);
    }
    for (r = 0; r < rows; ++r) {
        if (partner[r] == r) {
            count[r] = end_layer(l, w + r);
        } else if (partner[r] < ROWS) {
            count[r] = count[partner[r]] = end_both(l, w + r, w + partner[r]);
        }
    }
}
#endif

static void networks(const float *x, unsigned rows, work *w, int *status)
{
    unsigned count[ROWS], done = 0, l, o, c, r, most;
#ifdef PAIRS
    unsigned partner[ROWS];
#endif
    for (r = 0; r < rows; ++r) {
        status[r] = read_row(x + (size_t)r * MODEL_INPUTS, w + r, count + r);
    }
#ifdef PAIRS
    pair_inputs(w, rows, count, partner);
#endif
    for (l = 0;; ++l) {
        const unsigned outputs = layers[l].outputs;
        for (r = most = 0; r < rows; ++r) {
            count[r] = begin_layer(l, w + r, count[r]);
            most = count[r] > most ? count[r] : most;
        }
#ifdef FOUR_ROWS
        done = add_narrow_layer(l, w, rows, count);
#endif
        for (o = 0; o < outputs; o += PIECE_OUTPUTS) {
            const unsigned n = least(outputs - o, PIECE_OUTPUTS);
            for (c = 0; c < most; c += PIECE_INPUTS) {
                for (r = done; r < rows; ++r) {
                    const unsigned some = c < count[r] ? least(count[r] - c, PIECE_INPUTS) : 0;
#ifdef PAIRS
                    if (partner[r] == ROWS) {
                        continue;
                    }
                    if (partner[r] != r) {
                        add_both(layers[l].single + o, APART(outputs), n, w[r].value + c,
                                 w[r].index + c, some, (partner[r] - r) * sizeof(work),
                                 w[r].raw + o);
                        continue;
                    }
#endif
                    if (some > 0) {
                        add_layer(l, o, n, w + r, c, some);
                    }
                }
            }
        }
        if (l + 1 == LAYERS) {
            break;
        }
#ifdef PAIRS
        end_pairs(l, w, rows, count, partner);
#else
        for (r = 0; r < rows; ++r) {
            count[r] = end_layer(l, w + r);
        }
#endif
    }
#if NARROWED
    for (r = 0; r < rows; ++r) {
        w[r].count = count[r];
    }
#endif
}
