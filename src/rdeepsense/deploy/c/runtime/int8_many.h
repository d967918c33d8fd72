/* Many rows in bytes: block by block of a layer's outputs, whose weights stay near for all rows. */

#ifdef PAIRS
#define MASKED (ROOM / 4)
#include "pairs.h"

/* The groups of a row that are not zero. */
static void mask_of(const uint8_t *x, unsigned groups, mask *m)
{
    unsigned g, k;
    for (k = 0; k < MASK; ++k) {
        m->bits[k] = 0;
    }
    for (g = 0; g + 16 <= groups; g += 16) {
        m->bits[g / 64] |= (uint64_t)some_of_sixteen(x + 4 * g) << g % 64;
    }
    for (; g < groups; ++g) {
        m->bits[g / 64] |= (uint64_t)(four_of(x + 4 * g) != 0) << g % 64;
    }
    for (m->count = k = 0; k < MASK; ++k) {
        m->count += count_of(m->bits[k]);
    }
}

/* Lists what the rows read of a layer, in pairs where that pays. */
static void pick_pairs(work *w, unsigned rows, unsigned groups, picked *some, unsigned *partner)
{
    mask of[ROWS];
    unsigned r;
    for (r = 0; r < rows; ++r) {
        mask_of(w[r].byte, groups, of + r);
    }
    pair_up(of, rows, (groups + 63) / 64, partner);
    for (r = 0; r < rows; ++r) {
        if (partner[r] == r) {
            some[r] = pick(w[r].byte, groups, w[r].room.group);
        } else if (partner[r] < ROWS) {
            some[r] =
                pick_both(w[r].byte, (partner[r] - r) * sizeof(work), groups, w[r].room.group);
            some[partner[r]] = some[r];
        }
    }
}
#endif

static void networks(const float *x, unsigned rows, work *w, int *status)
{
    float step[ROWS];
    unsigned l, o, r;
#ifdef SKIPPING
    picked some[ROWS];
#endif
#ifdef PAIRS
    unsigned partner[ROWS];
#endif
    for (r = 0; r < rows; ++r) {
        status[r] = read_row(x + (size_t)r * MODEL_INPUTS, w + r);
        step[r] = 1.0f;
    }
#ifdef SKIPPING
    for (r = 0; r < rows; ++r) {
        begin_inputs(layers, w[r].sum);
    }
    for (o = 0; o < layers[0].outputs; o += BLOCK) {
        const unsigned n = block_of(layers[0].outputs, o);
        const int8_t *from = layers[0].weight + (size_t)4 * layers[0].groups * o;
        for (r = 0; r < rows; ++r) {
            add_first(from, w[r].byte, w[r].room.low, layers[0].groups, n, w[r].sum + o);
        }
    }
#else
    for (r = 0; r < rows; ++r) {
        add_inputs(layers, w[r].byte, w[r].room.low, w[r].sum);
    }
#endif
    for (l = 1; l < LAYERS; ++l) {
        for (r = 0; r < rows; ++r) {
            step[r] = begin_layer(l, w + r, step[r]);
        }
#ifdef FEW
        if (FEW(layers[l].outputs)) {
            for (r = 0; r < rows; ++r) {
                add_few(layers[l].weight, w[r].byte, layers[l].groups, layers[l].outputs, w[r].sum);
            }
            continue;
        }
#endif
#ifdef PAIRS
        pick_pairs(w, rows, layers[l].groups, some, partner);
#else
#ifdef SKIPPING
        for (r = 0; r < rows; ++r) {
            some[r] = pick(w[r].byte, layers[l].groups, w[r].room.group);
        }
#endif
#endif
        for (o = 0; o < layers[l].outputs; o += BLOCK) {
            const unsigned n = block_of(layers[l].outputs, o);
            const int8_t *from = layers[l].weight + (size_t)4 * layers[l].groups * o;
            for (r = 0; r < rows; ++r) {
#ifdef PAIRS
                if (n > 32 && partner[r] != r) {
                    if (partner[r] < ROWS) {
                        add_both(from, w[r].byte, (partner[r] - r) * sizeof(work), some + r, n,
                                 w[r].sum + o);
                    }
                    continue;
                }
#endif
#ifdef SKIPPING
                add_some(from, w[r].byte, some + r, n, w[r].sum + o);
#else
                add_block(from, w[r].byte, layers[l].groups, n, w[r].sum + o);
#endif
            }
        }
    }
    for (r = 0; r < rows; ++r) {
        end_network(w + r, step[r]);
    }
}
