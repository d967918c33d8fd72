/* Layers of half floats: columns of weights times numbers that are not zero. */

/* Where halves are widened by the processor: strips of outputs, whose sums stay in registers. */
#if defined(__F16C__) && defined(__FMA__)
#define STRIP 8   /* with AVX-512, too: twice as wide registers took longer */
#define COLUMNS 4 /* at a time */
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
#define COLUMNS 1 /* of more compilers mix the loads, and run out of registers */
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
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 4")
#endif

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
    unsigned c, k;
    for (k = 0; k < strips; ++k) {
        s[k] = STRIP_LOAD(sum + STRIP * k);
    }
    for (; count > 0; count -= COLUMNS, index += COLUMNS, value += COLUMNS) {
        if (strips * STRIP > 64 && count > AHEAD) {
            UNROLLED
            for (c = 0; c < COLUMNS; ++c) {
                call_for(from + index[AHEAD + c] * high, strips);
            }
        }
        UNROLLED
        for (c = 0; c < COLUMNS; ++c) {
            add_column(s, from + index[c] * high, value[c], strips);
        }
    }
    for (k = 0; k < strips; ++k) {
        STRIP_STORE(sum + STRIP * k, s[k]);
    }
}

#define ADD(pairs, strips)                                           \
    case pairs:                                                      \
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
    switch (n > STRIP ? (n + 2 * STRIP - 1) / (2 * STRIP) : 0) {
        ADD(0, 1);
        ADD(1, 2);
        ADD(2, 4);
        ADD(3, 6);
        ADD(4, 8);
        ADD(5, 10);
        ADD(6, 12);
#ifdef WITH_32_REGISTERS
        ADD(7, 14);
        ADD(8, 16);
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
