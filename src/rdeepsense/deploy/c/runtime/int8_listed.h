/* add_some and add_first by add_groups, with which a kernel multiplies the groups of a list. One
   that takes signed bytes alone defines SIGNED; activations are then taken apart as (x & 127) + (x
   & 128), and few of them are that large. */

#define SKIPPING

/* The groups of a row that are not zero; first those with activations of 128 and more. */
typedef struct {
    const uint16_t *group;
    unsigned count, highs;
} picked;

/* Lists the groups; room is for as many as there are. */
static picked pick(const uint8_t *x, unsigned groups, uint16_t *room)
{
    picked p = {0, 0, 0};
    unsigned g;
    for (g = 0; g < groups; ++g) {
        const uint32_t four = four_of(x + 4 * g);
#ifdef SIGNED
        const unsigned high = (four & 0x80808080u) != 0, at = high ? p.highs : p.count;
        room[p.count] = room[at];
        room[at] = (uint16_t)g;
        p.highs += high;
#else
        room[p.count] = (uint16_t)g;
#endif
        p.count += four != 0;
    }
    p.group = room;
    return p;
}

static void add_some(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                     int32_t *restrict sum)
{
#ifdef SIGNED
    add_groups(w, x, 127, 1, p->group, p->count, n, sum);
    add_groups(w, x, 128, 1, p->group, p->highs, n, sum);
#else
    add_groups(w, x, 255, 1, p->group, p->count, n, sum);
#endif
}

#if INT8
/* Of every group, of numbers of two bytes. */
static void add_first(const int8_t *w, const uint8_t *high, const uint8_t *low, unsigned groups,
                      unsigned n, int32_t *restrict sum)
{
#ifdef SIGNED
    add_groups(w, high, 127, 256, 0, groups, n, sum);
    add_groups(w, high, 128, 256, 0, groups, n, sum);
    add_groups(w, low, 127, 1, 0, groups, n, sum);
    add_groups(w, low, 128, 1, 0, groups, n, sum);
#else
    add_groups(w, high, 255, 256, 0, groups, n, sum);
    add_groups(w, low, 255, 1, 0, groups, n, sum);
#endif
}
#endif

#include "int8_sparse.h"
