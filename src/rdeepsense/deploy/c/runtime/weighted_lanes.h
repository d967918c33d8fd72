/* Products in wide registers, of a few rows at once: a weight is read once for all of them. Sums
   are added one input after the other. */

#if defined(__AVX512F__)
#include <immintrin.h>
#define LANES 16
#define PLUS(sum, v, w) ((lanes)_mm512_fmadd_ps(_mm512_set1_ps(v), (__m512)(w), (__m512)(sum)))
#elif defined(__FMA__)
#include <immintrin.h>
#define LANES 8
#define PLUS(sum, v, w) ((lanes)_mm256_fmadd_ps(_mm256_set1_ps(v), (__m256)(w), (__m256)(sum)))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define LANES 4
#define PLUS(sum, v, w) ((lanes)vfmaq_n_f32((float32x4_t)(sum), (float32x4_t)(w), v))
#else
#define LANES 4
#define PLUS(sum, v, w) ((sum) + (v) * (w))
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
#define MOST_SUMS 16 /* in registers, of which there are twice as many */
#else
#define MOST_SUMS 12
#endif

/* One number as in registers, so that their width does not matter. */
#if defined(__FMA__) || defined(__aarch64__)
#define FUSED(v, w, sum) __builtin_fmaf(v, w, sum)
#else
#define FUSED(v, w, sum) ((sum) + (v) * (w))
#endif

#define FEW 4 /* rows at most */

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define LOADED(p) (*(const lanes *)(p))
#define STORED(p) (*(lanes *)(p))
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif
#define INLINE static inline __attribute__((always_inline))

/* What some rows are multiplied with: inputs of a row lie `step` apart, rows `apart`. There may be
   several stretches, each of which begins `far` after the one before, its weights `further`. */
typedef struct {
    const float *x;
    size_t step, apart, far, further;
    unsigned inputs, stretches;
} factors;

/* sum += W x for some rows and registers of outputs; a column of W has n numbers. */
INLINE void add_registers(const float *from, unsigned n, const factors *a, unsigned rows,
                          unsigned wide, float *sum, size_t apart)
{
    lanes s[FEW][8];
    unsigned i, k, r, j;
    UNROLLED
    for (r = 0; r < rows; ++r) {
        UNROLLED
        for (j = 0; j < wide; ++j) {
            s[r][j] = LOADED(sum + r * apart + j * LANES);
        }
    }
    for (k = 0; k < a->stretches; ++k) {
        const float *x = a->x + k * a->far, *w = from + k * a->further;
        for (i = 0; i < a->inputs; ++i, w += n, x += a->step) {
            UNROLLED
            for (r = 0; r < rows; ++r) {
                const float v = x[r * a->apart];
                UNROLLED
                for (j = 0; j < wide; ++j) {
                    s[r][j] = PLUS(s[r][j], v, LOADED(w + j * LANES));
                }
            }
        }
    }
    UNROLLED
    for (r = 0; r < rows; ++r) {
        UNROLLED
        for (j = 0; j < wide; ++j) {
            STORED(sum + r * apart + j * LANES) = s[r][j];
        }
    }
}

/* Of outputs that fill no register. */
static void add_rest(const float *from, unsigned n, const factors *a, unsigned rows, unsigned rest,
                     float *sum, size_t apart)
{
    unsigned i, k, r, j;
    for (r = 0; r < rows; ++r, sum += apart) {
        for (k = 0; k < a->stretches; ++k) {
            const float *x = a->x + k * a->far + r * a->apart, *w = from + k * a->further;
            for (i = 0; i < a->inputs; ++i, w += n, x += a->step) {
                for (j = 0; j < rest; ++j) {
                    sum[j] = FUSED(*x, w[j], sum[j]);
                }
            }
        }
    }
}

/* Of the n outputs of a panel, as many registers at a time as there are. */
INLINE void add_outputs(const float *w, unsigned n, const factors *a, unsigned rows, float *sum,
                        size_t apart)
{
    unsigned j = 0;
    for (; rows * 8 <= MOST_SUMS && j + 8 * LANES <= n; j += 8 * LANES) {
        add_registers(w + j, n, a, rows, 8, sum + j, apart);
    }
    for (; rows * 4 <= MOST_SUMS && j + 4 * LANES <= n; j += 4 * LANES) {
        add_registers(w + j, n, a, rows, 4, sum + j, apart);
    }
    for (; j + 2 * LANES <= n; j += 2 * LANES) {
        add_registers(w + j, n, a, rows, 2, sum + j, apart);
    }
    for (; j + LANES <= n; j += LANES) {
        add_registers(w + j, n, a, rows, 1, sum + j, apart);
    }
    if (j < n) {
        add_rest(w + j, n, a, rows, n - j, sum + j, apart);
    }
}

/* sum += W x for the n outputs of a panel; sums of a row lie apart, too. */
static void add_panel(const float *w, unsigned n, const factors *a, unsigned rows, float *sum,
                      size_t apart)
{
    switch (rows) {
    case 1:
        add_outputs(w, n, a, 1, sum, apart);
        break;
    case 2:
        add_outputs(w, n, a, 2, sum, apart);
        break;
    case 3:
        add_outputs(w, n, a, 3, sum, apart);
        break;
    default:
        add_outputs(w, n, a, FEW, sum, apart);
        break;
    }
}
