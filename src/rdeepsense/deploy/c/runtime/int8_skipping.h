/* sum += W x with add_some: groups that are all zero are left out. */
#include <immintrin.h>

/* Four bytes as one word. */
static uint32_t four_of(const void *from)
{
    const uint8_t *p = from;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* add_some: sum[0..n) += W x for one block of n <= 64 outputs, as add_block, but of the count
   groups that group names, or without it of the first count ones. */
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#include "int8_avx512.h"
#elif defined(__AVX2__)
#include "int8_avx2.h"
#else
#include "int8_sse2.h"
#endif

/* Groups are skipped if there is room to say which ones are not zero. */
static void add_products(const layer *l, const uint8_t *x, uint16_t *group, int32_t *restrict sum)
{
    const int8_t *w = l->weight;
    const unsigned groups = l->groups, outputs = l->outputs;
    unsigned count = groups, g, o;
    if (group != 0) {
        for (count = g = 0; g < groups; ++g) {
            group[count] = (uint16_t)g;
            count += four_of(x + 4 * g) != 0;
        }
    }
    for (o = 0; o < outputs; o += 64) {
        const unsigned n = outputs - o < 64 ? outputs - o : 64;
        add_some(w, x, group, count, n, sum + o);
        w += 4 * groups * n;
    }
}

static void add_inputs(const layer *l, const uint8_t *high, const uint8_t *low,
                       int32_t *restrict sum)
{
    unsigned i;
    for (i = 0; i < l->outputs; ++i) {
        sum[i] = 0;
    }
    add_products(l, high, 0, sum);
    for (i = 0; i < l->outputs; ++i) {
        sum[i] = sum[i] * 256 + (int32_t)l->bias[i];
    }
    add_products(l, low, 0, sum);
}
