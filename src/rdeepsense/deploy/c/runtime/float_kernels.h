/* Layers of floats: columns of weights times numbers that are not zero. */

#if defined(__SSE2__)
#include <immintrin.h>
#endif

typedef struct {
#if HALVES
    const uint16_t *half; /* column by column */
#endif
#if HALVES && SINGLES
    const float *single; /* where it is not 0: instead */
#elif SINGLES
    const float *single; /* column by column */
#endif
    const float *bias;
#if HALVES
    float gain;
#endif
    uint16_t outputs;
} layer;

/* sum + a b, rounded once where that is one instruction: the same on all processors that can. */
#if defined(__OPTIMIZE__) && (defined(__FMA__) || (defined(__aarch64__) && defined(__GNUC__)))
#define FUSED(a, b, sum) __builtin_fmaf(a, b, sum)
#endif

/* How far apart columns of n weights lie: of many rows an odd number of cache lines, so that the
   pieces of neighbours do not drive each other out. */
#if MANY
#define APART(n) ((n) < 64 ? (n) : (((n) + 15u) / 16u * 16u) | 16u)
#else
#define APART(n) (n)
#endif

#if SINGLES
/* sum += W value for n outputs from first on, four or eight columns of W at a time: more need more
   registers, fewer more traffic to and from sum, which begins with the first. */
static void add_singles(const layer *l, unsigned first, unsigned n, const float *restrict value,
                        const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    const size_t high = APART(l->outputs);
    const float *from = l->single + first;
    unsigned c = 0, j;
#if defined(__SSE2__) || defined(__aarch64__)
    for (; c + 8 <= count; c += 8) {
        const float *restrict v = value + c;
        const float *restrict w0 = from + index[c + 0] * high;
        const float *restrict w1 = from + index[c + 1] * high;
        const float *restrict w2 = from + index[c + 2] * high;
        const float *restrict w3 = from + index[c + 3] * high;
        const float *restrict w4 = from + index[c + 4] * high;
        const float *restrict w5 = from + index[c + 5] * high;
        const float *restrict w6 = from + index[c + 6] * high;
        const float *restrict w7 = from + index[c + 7] * high;
        const float v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
        const float v4 = v[4], v5 = v[5], v6 = v[6], v7 = v[7];
        j = 0;
        do {
#ifdef FUSED
            float s = FUSED(v1, w1[j], FUSED(v0, w0[j], sum[j]));
            s = FUSED(v3, w3[j], FUSED(v2, w2[j], s));
            s = FUSED(v5, w5[j], FUSED(v4, w4[j], s));
            sum[j] = FUSED(v7, w7[j], FUSED(v6, w6[j], s));
#else
            const float half = (v0 * w0[j] + v1 * w1[j]) + (v2 * w2[j] + v3 * w3[j]);
            const float more = (v4 * w4[j] + v5 * w5[j]) + (v6 * w6[j] + v7 * w7[j]);
            sum[j] += half + more;
#endif
        } while (++j < n);
    }
#endif
    for (; c < count; c += 4) {
        const float *restrict p = from + index[c] * high;
        const float *restrict q = from + index[c + 1] * high;
        const float *restrict r = from + index[c + 2] * high;
        const float *restrict s = from + index[c + 3] * high;
        const float a = value[c], b = value[c + 1], d = value[c + 2], e = value[c + 3];
        j = 0;
        do {
#ifdef FUSED
            sum[j] = FUSED(e, s[j], FUSED(d, r[j], FUSED(b, q[j], FUSED(a, p[j], sum[j]))));
#else
            sum[j] += (a * p[j] + b * q[j]) + (d * r[j] + e * s[j]);
#endif
        } while (++j < n);
    }
}
#endif

#if HALVES
#include "float_halves.h"
#endif
