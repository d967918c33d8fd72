/* The largest of a layer's sums, on x86. What else a layer does beside its products compilers do by
   vectors, but comparisons they keep in order, one at a time. */
#include <immintrin.h>

#if defined(__AVX512F__) && !defined(ONLY_256_BITS)
#define FIRST(n) (__mmask16)((n) < 16 ? (1u << (n)) - 1u : 0xffffu)

/* sum factor of the numbers that a mask has, 0 of the others. */
static inline __m512 sixteen_at(__mmask16 some, const int32_t *sum, const float *factor)
{
    const __m512 h = _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(some, sum));
    return _mm512_mul_ps(h, _mm512_maskz_loadu_ps(some, factor));
}

/* top = the largest of sum factor, or top, which is above zero. */
static unsigned largest_lanes(const int32_t *restrict sum, const float *restrict factor, unsigned n,
                              float *top)
{
    __m512 part[2] = {_mm512_set1_ps(*top), _mm512_setzero_ps()};
    unsigned i;
    for (i = 0; i + 32 <= n; i += 32) {
        part[0] = _mm512_max_ps(part[0], sixteen_at(0xffff, sum + i, factor + i));
        part[1] = _mm512_max_ps(part[1], sixteen_at(0xffff, sum + i + 16, factor + i + 16));
    }
    for (; i < n; i += 16) {
        part[0] = _mm512_max_ps(part[0], sixteen_at(FIRST(n - i), sum + i, factor + i));
    }
    *top = _mm512_reduce_max_ps(_mm512_max_ps(part[0], part[1]));
    return n;
}
#else
#if defined(__AVX2__)
#define REALS 8
typedef __m256 reals;
#define ALL_REALS(value) _mm256_set1_ps(value)
#define REALS_OF(p) _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define SCALED(a, p) _mm256_mul_ps(a, _mm256_loadu_ps(p))
#define LARGER(a, b) _mm256_max_ps(a, b)
#define STORE_REALS(p, v) _mm256_storeu_ps(p, v)
#else
#define REALS 4
typedef __m128 reals;
#define ALL_REALS(value) _mm_set1_ps(value)
#define REALS_OF(p) _mm_cvtepi32_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define SCALED(a, p) _mm_mul_ps(a, _mm_loadu_ps(p))
#define LARGER(a, b) _mm_max_ps(a, b)
#define STORE_REALS(p, v) _mm_storeu_ps(p, v)
#endif

/* top = the largest of sum factor, or top; returns of how many. */
static unsigned largest_lanes(const int32_t *restrict sum, const float *restrict factor, unsigned n,
                              float *top)
{
    reals part[4];
    float each[REALS];
    unsigned i, j;
    for (j = 0; j < 4; ++j) {
        part[j] = ALL_REALS(*top);
    }
    for (i = 0; i + 4 * REALS <= n; i += 4 * REALS) {
        for (j = 0; j < 4; ++j) {
            const unsigned at = i + REALS * j;
            part[j] = LARGER(part[j], SCALED(REALS_OF(sum + at), factor + at));
        }
    }
    for (; i + REALS <= n; i += REALS) {
        part[0] = LARGER(part[0], SCALED(REALS_OF(sum + i), factor + i));
    }
    STORE_REALS(each, LARGER(LARGER(part[0], part[1]), LARGER(part[2], part[3])));
    for (j = 0; j < REALS; ++j) {
        *top = each[j] > *top ? each[j] : *top;
    }
    return i;
}
#endif
