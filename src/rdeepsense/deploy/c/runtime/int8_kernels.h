/* Layers of bytes: sums of weights times activations, exact in 32 bits. */
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#elif defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#elif defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>
#endif

typedef struct {
    const int8_t *weight;
    const float *bias;
    const float *factor;
    float least;     /* 255 times the smallest step of what it writes */
    uint16_t groups; /* of four inputs */
    uint16_t outputs;
} layer;

#if defined(__SSE2__) || (defined(__ARM_FEATURE_DSP) && defined(__ARMEL__) && \
                          !defined(__ARM_NEON) && !defined(__ARM_FEATURE_MVE))
/* Four bytes as one word. */
static uint32_t four_of(const void *from)
{
    const uint8_t *p = from;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
#endif

/* add_block: sum[0..n) += W x for one block of n <= 64 outputs: in it groups of four inputs, in a
   group output by output. All give the same sums; wide ones go past n, into room left for that. */
#if defined(__SSE2__)

/* Of the count groups that group names, or without it the first count ones. */
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
static void add_block(const int8_t *w, const uint8_t *x, const uint16_t *group, unsigned count,
                      unsigned n, int32_t *restrict sum)
{
    __m512i s[4];
    unsigned g, j;
    for (j = 0; j < 4; ++j) {
        s[j] = _mm512_loadu_si512(sum + 16 * j);
    }
    for (g = 0; g < count; ++g) {
        const unsigned at = group == 0 ? g : group[g];
        const int8_t *p = w + 4 * n * at;
        const __m512i four = _mm512_set1_epi32((int)four_of(x + 4 * at));
        for (j = 0; j < 4; ++j) {
            s[j] = _mm512_dpbusd_epi32(s[j], four, _mm512_loadu_si512(p + 64 * j));
        }
    }
    for (j = 0; j < 4; ++j) {
        _mm512_storeu_si512(sum + 16 * j, s[j]);
    }
}
#elif defined(__AVX2__)
static void add_block(const int8_t *w, const uint8_t *x, const uint16_t *group, unsigned count,
                      unsigned n, int32_t *restrict sum)
{
    unsigned g, j, k;
    for (j = 0; j < n; j += 16) {
        __m256i s[4];
        for (k = 0; k < 4; ++k) {
            s[k] = _mm256_setzero_si256();
        }
        for (g = 0; g < count; ++g) {
            const unsigned at = group == 0 ? g : group[g];
            const int8_t *p = w + 4 * (n * at + j);
            const __m128i bytes = _mm_cvtsi32_si128((int)four_of(x + 4 * at));
            const __m256i four = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(bytes));
            for (k = 0; k < 4; ++k) {
                const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * k));
                s[k] = _mm256_add_epi32(s[k], _mm256_madd_epi16(_mm256_cvtepi8_epi16(v), four));
            }
        }
        for (k = 0; k < 2; ++k) {
            __m256i *to = (__m256i *)(void *)(sum + j + 8 * k);
            const __m256i pairs = _mm256_hadd_epi32(s[2 * k], s[2 * k + 1]);
            const __m256i found = _mm256_permute4x64_epi64(pairs, 0xd8);
            _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), found));
        }
    }
}
#else
static void add_block(const int8_t *w, const uint8_t *x, const uint16_t *group, unsigned count,
                      unsigned n, int32_t *restrict sum)
{
    unsigned g, j, k;
    for (j = 0; j < n; j += 8) {
        __m128i s[4];
        for (k = 0; k < 4; ++k) {
            s[k] = _mm_setzero_si128();
        }
        for (g = 0; g < count; ++g) {
            const unsigned at = group == 0 ? g : group[g];
            const int8_t *p = w + 4 * (n * at + j);
            const __m128i bytes = _mm_cvtsi32_si128((int)four_of(x + 4 * at));
            const __m128i wide = _mm_unpacklo_epi8(bytes, _mm_setzero_si128());
            const __m128i four = _mm_unpacklo_epi64(wide, wide);
            for (k = 0; k < 2; ++k) {
                const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * k));
                const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8);
                const __m128i high = _mm_srai_epi16(_mm_unpackhi_epi8(v, v), 8);
                s[2 * k] = _mm_add_epi32(s[2 * k], _mm_madd_epi16(low, four));
                s[2 * k + 1] = _mm_add_epi32(s[2 * k + 1], _mm_madd_epi16(high, four));
            }
        }
        for (k = 0; k < 2; ++k) {
            __m128i *to = (__m128i *)(void *)(sum + j + 4 * k);
            const __m128 a = _mm_castsi128_ps(s[2 * k]), b = _mm_castsi128_ps(s[2 * k + 1]);
            const __m128i even = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
            const __m128i odd = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
            _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), _mm_add_epi32(even, odd)));
        }
    }
}
#endif

/* sum += W x. Groups that are all zero are skipped if there is room to say which ones are not. */
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
        add_block(w, x, group, count, n, sum + o);
        w += 4 * groups * n;
    }
}
#else

#if defined(__ARM_NEON)
static void add_block(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                      int32_t *restrict sum)
{
    unsigned g, j, k;
    for (j = 0; j < n; j += 8) {
        const int8_t *p = w + 4 * j;
        int32x4_t low = vld1q_s32(sum + j), high = vld1q_s32(sum + j + 4);
        for (g = 0; g < groups; ++g, p += 4 * n) {
            const int8x8x4_t v = vld4_s8(p);
            for (k = 0; k < 4; ++k) {
                const int16x8_t wide = vmovl_s8(v.val[k]);
                low = vmlal_n_s16(low, vget_low_s16(wide), x[4 * g + k]);
                high = vmlal_n_s16(high, vget_high_s16(wide), x[4 * g + k]);
            }
        }
        vst1q_s32(sum + j, low);
        vst1q_s32(sum + j + 4, high);
    }
}
#elif defined(__ARM_FEATURE_MVE)
static void add_block(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                      int32_t *restrict sum)
{
    const uint32x4_t first = vidupq_n_u32(0, 4), second = vaddq_n_u32(first, 1);
    const uint32x4_t third = vaddq_n_u32(first, 2), fourth = vaddq_n_u32(first, 3);
    unsigned g, j;
    for (j = 0; j < n; j += 4) {
        const int8_t *p = w + 4 * j;
        const uint8_t *from = x;
        int32x4_t s = vldrwq_s32(sum + j);
        for (g = 0; g < groups; ++g, p += 4 * n, from += 4) {
            s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p, first), from[0]);
            s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p, second), from[1]);
            s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p, third), from[2]);
            s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p, fourth), from[3]);
        }
        vstrwq_s32(sum + j, s);
    }
}
#elif defined(__ARM_FEATURE_DSP) && defined(__ARMEL__)
#define EVEN(four) ((int16x2_t)((four)&0x00ff00ffu))
#define ODD(four) ((int16x2_t)((four)&0xff00ff00u))
static void add_block(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                      int32_t *restrict sum)
{
    unsigned g, j;
    /* Two groups at a time halve the traffic to and from sum. */
    for (g = 0; g + 2 <= groups; g += 2, w += 4 * n) {
        const uint32_t first = four_of(x + 4 * g), second = four_of(x + 4 * g + 4);
        const int16x2_t a = EVEN(first), b = EVEN(first >> 8);
        const int16x2_t c = EVEN(second), d = EVEN(second >> 8);
        for (j = 0; j < n; ++j, w += 4) {
            const uint32_t u = four_of(w), v = four_of(w + 4 * n);
            /* Odd weights stay where they are, which multiplies them by 256. */
            const int32_t odd = __smlad(ODD(v), d, __smuad(ODD(u), b));
            const int32_t even = __smlad(__sxtb16((int8x4_t)u), a, sum[j]);
            sum[j] = __smlad(__sxtb16((int8x4_t)v), c, even) + (odd >> 8);
        }
    }
    for (; g < groups; ++g) {
        for (j = 0; j < n; ++j, w += 4) {
            sum[j] +=
                x[4 * g] * w[0] + x[4 * g + 1] * w[1] + x[4 * g + 2] * w[2] + x[4 * g + 3] * w[3];
        }
    }
}
#else
static void add_block(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                      int32_t *restrict sum)
{
    unsigned g, j;
    for (g = 0; g < groups; ++g) {
        const int32_t a = x[4 * g], b = x[4 * g + 1], c = x[4 * g + 2], d = x[4 * g + 3];
        for (j = 0; j < n; ++j, w += 4) {
            sum[j] += a * w[0] + b * w[1] + c * w[2] + d * w[3];
        }
    }
}
#endif

/* sum += W x, all of it: to skip did not pay here. */
#define add_products(l, x, group, sum) add_all((l)->weight, x, (l)->groups, (l)->outputs, sum)
static void add_all(const int8_t *w, const uint8_t *x, unsigned groups, unsigned outputs,
                    int32_t *restrict sum)
{
    unsigned o;
    for (o = 0; o < outputs; o += 64) {
        const unsigned n = outputs - o < 64 ? outputs - o : 64;
        add_block(w, x, groups, n, sum + o);
        w += 4 * groups * n;
    }
}
#endif
