/* Layers of half floats: columns of weights times numbers that are not zero. */

/* Where halves are widened by the processor: strips of outputs, whose sums stay in registers. */
#if defined(__F16C__) && defined(__FMA__)
#define STRIP 8 /* with AVX-512, too: twice as wide registers took longer */
typedef __m256 strip;
#define STRIP_LOAD(p) _mm256_loadu_ps(p)
#define STRIP_STORE(p, v) _mm256_storeu_ps(p, v)
#define STRIP_ALL(value) _mm256_set1_ps(value)
#define STRIP_WIDEN(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define STRIP_FUSED(a, w, sum) _mm256_fmadd_ps(a, w, sum)
#elif defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA) && defined(__ARM_FP16_FORMAT_IEEE) && \
    !defined(__ARM_BIG_ENDIAN) && (__ARM_FP & 2)
#include <arm_neon.h>
#define STRIP 4
typedef float32x4_t strip;
#define STRIP_LOAD(p) vld1q_f32(p)
#define STRIP_STORE(p, v) vst1q_f32(p, v)
#define STRIP_ALL(value) vdupq_n_f32(value)
#define STRIP_WIDEN(p) vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))
#define STRIP_FUSED(a, w, sum) vfmaq_f32(sum, a, w)
#endif

#ifdef STRIP
#if defined(__AVX512VL__) || defined(__aarch64__)
#define WITH_32_REGISTERS
#define STRIPS 16
#else
#define STRIPS 12
#endif
#define AHEAD 8 /* columns that are called for before their turn */
#define LINE 32 /* halves of a cache line */

#define IN_LINE static inline __attribute__((always_inline))

/* Adds the products of one column to so many strips, which stay in registers. */
IN_LINE void add_column(strip *s, const uint16_t *w, float value, unsigned strips)
{
    const strip v = STRIP_ALL(value);
    unsigned k;
    for (k = 0; k < strips; ++k) {
        s[k] = STRIP_FUSED(v, STRIP_WIDEN(w + STRIP * k), s[k]);
    }
}

/* Columns of a wide layer come from afar. */
IN_LINE void call_for(const uint16_t *w, unsigned strips)
{
    unsigned k;
    for (k = 0; k < strips * STRIP; k += LINE) {
        __builtin_prefetch(w + k);
    }
}

/* sum += W value for so many strips. Every output's products are added one after the other, however
   many strips there are: so a row has the same numbers alone and among others. */
IN_LINE void add_strips(const uint16_t *from, size_t high, const float *restrict value,
                        const uint16_t *restrict index, unsigned count, unsigned strips,
                        float *restrict sum)
{
    strip s[STRIPS];
    unsigned k;
    for (k = 0; k < strips; ++k) {
        s[k] = STRIP_LOAD(sum + STRIP * k);
    }
    for (; count > 0; count -= 4, index += 4, value += 4) {
        if (strips * STRIP > 64 && count > AHEAD) {
            call_for(from + index[AHEAD] * high, strips);
            call_for(from + index[AHEAD + 1] * high, strips);
            call_for(from + index[AHEAD + 2] * high, strips);
            call_for(from + index[AHEAD + 3] * high, strips);
        }
        add_column(s, from + index[0] * high, value[0], strips);
        add_column(s, from + index[1] * high, value[1], strips);
        add_column(s, from + index[2] * high, value[2], strips);
        add_column(s, from + index[3] * high, value[3], strips);
    }
    for (k = 0; k < strips; ++k) {
        STRIP_STORE(sum + STRIP * k, s[k]);
    }
}

#define CASE(strips)                                                 \
    case strips:                                                     \
        add_strips(from, high, value, index, count, strips, padded); \
        break

/* The last n < STRIP STRIPS outputs. Columns are read past their end, into the next or the table's
   pad; sums are not. */
static void add_rest(const uint16_t *from, size_t high, unsigned n, const float *restrict value,
                     const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    float padded[STRIP * STRIPS] = {0};
    unsigned j;
    for (j = 0; j < n; ++j) {
        padded[j] = sum[j];
    }
    switch ((n + STRIP - 1) / STRIP) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
        CASE(9);
        CASE(10);
        CASE(11);
        CASE(12);
#ifdef WITH_32_REGISTERS
        CASE(13);
        CASE(14);
        CASE(15);
        CASE(16);
#endif
    default:
        break;
    }
    for (j = 0; j < n; ++j) {
        sum[j] = padded[j];
    }
}

static void add_halves(const layer *l, unsigned first, unsigned n, const float *restrict value,
                       const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    const size_t high = APART(l->outputs);
    const uint16_t *from = l->half + first;
    for (; n >= STRIP * STRIPS; n -= STRIP * STRIPS) {
        add_strips(from, high, value, index, count, STRIPS, sum);
        from += STRIP * STRIPS;
        sum += STRIP * STRIPS;
    }
    if (n > 0) {
        add_rest(from, high, n, value, index, count, sum);
    }
}
#else
/* A half float as a float, exactly. */
#if defined(__ARM_FP16_FORMAT_IEEE) && defined(__ARM_FP) && \
    (__ARM_FP & 2 || __ARM_ARCH_PROFILE == 'M') /* the last for gcc, which forgets the 2 there */
static float widen(uint16_t half)
{
    union {
        uint16_t bits;
        __fp16 value;
    } h;
    h.bits = half;
    return h.value;
}
#else
static float widen(uint16_t half)
{
    word w;
    w.bits = ((uint32_t)(half & 0x8000u) << 16) | ((uint32_t)(half & 0x7fffu) << 13);
    return w.value * 5.19229686e33f; /* 2^112, the difference of the exponents' offsets */
}
#endif

/* sum += W value for n outputs from first on, four columns of W at a time. */
#if defined(__GNUC__)
__attribute__((noinline)) /* in line it has too few registers */
#endif
static void
add_halves(const layer *l, unsigned first, unsigned n, const float *restrict value,
           const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    const size_t high = APART(l->outputs);
    const uint16_t *from = l->half + first;
    unsigned c, j;
    for (c = 0; c < count; c += 4) {
        const uint16_t *restrict p = from + index[c] * high;
        const uint16_t *restrict q = from + index[c + 1] * high;
        const uint16_t *restrict r = from + index[c + 2] * high;
        const uint16_t *restrict s = from + index[c + 3] * high;
        const float a = value[c], b = value[c + 1], d = value[c + 2], e = value[c + 3];
        for (j = 0; j < n; ++j) {
            sum[j] += (a * widen(p[j]) + b * widen(q[j])) + (d * widen(r[j]) + e * widen(s[j]));
        }
    }
}
#endif
