/* Products of x86: groups of four inputs that are all zero are left out. */
#include <immintrin.h>

#if defined(__GNUC__)
#define ALWAYS static inline __attribute__((always_inline))
#else
#define ALWAYS static inline
#endif
#define SKIPPING
/* Sums whose lanes have their size: gcc adds to them where they are. */
typedef uint32_t four_sums __attribute__((vector_size(16)));
typedef uint32_t eight_sums __attribute__((vector_size(32)));
#define EIGHT_FOURS(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))

/* The groups of a row that are not zero; apart, the large ones where a kernel must know. */
typedef struct {
    const uint16_t *group, *large;
    unsigned count, larges;
} picked;

/* Four bytes as one word. */
static uint32_t four_of(const void *from)
{
    const uint8_t *p = from;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* add_some: sum[0..n) += W x for one block of n outputs, of the groups that are picked, or
   add_lanes: the same for lanes registers of LANE outputs each.
   add_first: of every group, of numbers of two bytes. */
#if defined(__AVX512VNNI__) && !defined(ONLY_256_BITS)
#include "int8_avx512.h"
#elif defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))
#include "int8_avxvnni.h"
#elif defined(__AVX2__)
#include "int8_avx2.h"
#else
#include "int8_sse2.h"
#endif

#ifdef LANE
static void add_some(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                     int32_t *restrict sum)
{
    if (n > 32) {
        add_lanes(w, x, p, n, 64 / LANE, sum);
    } else if (n > LANE) {
        add_lanes(w, x, p, n, 32 / LANE, sum);
    } else {
        add_lanes(w, x, p, n, 1, sum);
    }
}
#endif

/* Lists the groups; room is for as many as there are. */
static picked pick(const uint8_t *x, unsigned groups, uint16_t *room)
{
    picked p;
    unsigned end = groups, count = 0, g = 0;
#ifdef PICK
    g = PICK(x, groups, room, &count, &end);
#endif
    for (; g < groups; ++g) {
        const uint32_t four = four_of(x + 4 * g);
#ifdef LARGE
        const unsigned large = LARGE(four) != 0;
        end -= large;
        room[large ? end : count] = (uint16_t)g;
        count += (four != 0) & !large;
#else
        room[count] = (uint16_t)g;
        count += four != 0;
#endif
    }
    p.group = room;
    p.count = count;
    p.large = room + end;
    p.larges = groups - end;
    return p;
}

#include "int8_sparse.h"
