/* Layers with float weights and float sums. */

#if HALVES
#if defined(__F16C__) && defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define EIGHT(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#endif
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

static const layer layers[] = {LAYER_TABLE};

typedef struct {
    float value[ROOM]; /* inputs of a layer that are not zero */
    float raw[SUMS];   /* its sums; of the last layer, the columns */
#if ENCODED
    float wide[NETWORK_INPUTS]; /* what is read of a row */
#endif
#if LAPLACE
    float laplace[LAPLACE_ROWS];
#endif
#if EMBEDDED
    embedding embedded;
#endif
#if LIVE || NARROWED
    uint32_t count; /* of the last layer's inputs that are not zero */
#endif
    uint16_t index[ROOM]; /* which inputs those are */
} work;
typedef char scratch_fits[sizeof(work) == MODEL_SCRATCH_BYTES ? 1 : -1];

#if SINGLES
/* sum += W value, four or eight columns of W at a time: more need more registers, fewer more
   traffic to and from sum. */
static void add_singles(const layer *l, const float *restrict value, const uint16_t *restrict index,
                        unsigned count, float *restrict sum)
{
    const unsigned n = l->outputs;
    unsigned c, j;
    c = 0;
#if defined(__SSE2__) || defined(__aarch64__)
    for (; c + 8 <= count; c += 8) {
        const float *restrict v = value + c;
        const float *restrict w0 = l->single + (size_t)index[c + 0] * n;
        const float *restrict w1 = l->single + (size_t)index[c + 1] * n;
        const float *restrict w2 = l->single + (size_t)index[c + 2] * n;
        const float *restrict w3 = l->single + (size_t)index[c + 3] * n;
        const float *restrict w4 = l->single + (size_t)index[c + 4] * n;
        const float *restrict w5 = l->single + (size_t)index[c + 5] * n;
        const float *restrict w6 = l->single + (size_t)index[c + 6] * n;
        const float *restrict w7 = l->single + (size_t)index[c + 7] * n;
        const float v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
        const float v4 = v[4], v5 = v[5], v6 = v[6], v7 = v[7];
        j = 0;
        do {
            const float first = (v0 * w0[j] + v1 * w1[j]) + (v2 * w2[j] + v3 * w3[j]);
            const float second = (v4 * w4[j] + v5 * w5[j]) + (v6 * w6[j] + v7 * w7[j]);
            sum[j] += first + second;
        } while (++j < n);
    }
#endif
    for (; c < count; c += 4) {
        const float *restrict p = l->single + (size_t)index[c] * n;
        const float *restrict q = l->single + (size_t)index[c + 1] * n;
        const float *restrict r = l->single + (size_t)index[c + 2] * n;
        const float *restrict s = l->single + (size_t)index[c + 3] * n;
        const float a = value[c], b = value[c + 1], d = value[c + 2], e = value[c + 3];
        j = 0;
        do {
            sum[j] += (a * p[j] + b * q[j]) + (d * r[j] + e * s[j]);
        } while (++j < n);
    }
}
#endif

#if HALVES
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

/* sum += W value, four columns of W at a time. */
static void add_halves(const layer *l, const float *restrict value, const uint16_t *restrict index,
                       unsigned count, float *restrict sum)
{
    const unsigned n = l->outputs;
    unsigned c, j;
    for (c = 0; c < count; c += 4) {
        const uint16_t *restrict p = l->half + (size_t)index[c] * n;
        const uint16_t *restrict q = l->half + (size_t)index[c + 1] * n;
        const uint16_t *restrict r = l->half + (size_t)index[c + 2] * n;
        const uint16_t *restrict s = l->half + (size_t)index[c + 3] * n;
        const float a = value[c], b = value[c + 1], d = value[c + 2], e = value[c + 3];
        j = 0;
#if defined(__F16C__) && defined(__AVX2__) && defined(__FMA__)
        for (; j + 8 <= n; j += 8) {
            __m256 t = _mm256_loadu_ps(sum + j);
            t = _mm256_fmadd_ps(_mm256_set1_ps(a), EIGHT(p + j), t);
            t = _mm256_fmadd_ps(_mm256_set1_ps(b), EIGHT(q + j), t);
            t = _mm256_fmadd_ps(_mm256_set1_ps(d), EIGHT(r + j), t);
            t = _mm256_fmadd_ps(_mm256_set1_ps(e), EIGHT(s + j), t);
            _mm256_storeu_ps(sum + j, t);
        }
#endif
        for (; j < n; ++j) {
            sum[j] += (a * widen(p[j]) + b * widen(q[j])) + (d * widen(r[j]) + e * widen(s[j]));
        }
    }
}
#endif

#if DROPOUT
/* Whether a unit is kept. A linear congruential generator: no other costs as little, and here
   nothing but cost matters. */
static uint32_t drawn = 1;
static unsigned kept(void)
{
    drawn = drawn * 1664525u + 1013904223u;
    return drawn >= DROPPED;
}
#endif

/* The columns of the last layer, in work->raw. */
static int network(const float *x, work *w)
{
    int status = MODEL_OK;
    unsigned count = 0, i, l;
#if ENCODED && GUARD || ENCODED && REFUSES_NAN
    for (i = 0; i < MODEL_INPUTS; ++i) {
#if GUARD
        status |= input_status(x, i);
#endif
#if REFUSES_NAN
        if (size_of(x[i]) > INFINITE) {
            return MODEL_MISSING;
        }
#endif
    }
#endif
#if ENCODED
    encode(x, w->wide);
    x = w->wide;
#endif
    for (i = 0; i < NETWORK_INPUTS; ++i) {
        float z = (x[i] - model_centre[i]) * model_per_scale[i];
#if GUARD && !ENCODED
        status |= input_status(x, i);
#endif
        if (size_of(z) > size_of(MODEL_REACH)) {
            if (size_of(z) > INFINITE) {
#if REFUSES_NAN
                return MODEL_MISSING;
#else
                z = 0.0f;
#endif
            } else {
                z = z > 0.0f ? MODEL_REACH : -MODEL_REACH;
                status |= MODEL_OUT_OF_RANGE;
            }
        }
#if HALVES
        w->value[count] = z * layers[0].gain;
#else
        w->value[count] = z;
#endif
        w->index[count] = (uint16_t)i;
        count += z != 0.0f;
    }
#if LAPLACE
    for (i = 0; i < LAPLACE_ROWS; ++i) {
        w->laplace[i] = 0.0f;
    }
    w->laplace[LAPLACE_ROWS - 1] = model_root[LAPLACE_ROWS * (LAPLACE_ROWS + 1) / 2 - 1];
#endif
#if LAPLACE && LAPLACE_READS_INPUTS
    add_rows(LAPLACE_HIDDEN, w->value, w->index, count, w->laplace);
#endif
#if EMBEDDED
    for (i = 0; i < NETWORK_INPUTS; ++i) {
        unsigned k;
        embed(i, (x[i] - model_centre[i]) * model_per_scale[i], &w->embedded);
        for (k = 0; k < EMBEDDING_WIDTH; ++k) {
            const float e = w->embedded.value[k];
#if HALVES
            w->value[count] = e * layers[0].gain;
#else
            w->value[count] = e;
#endif
            w->index[count] = (uint16_t)(NETWORK_INPUTS + i * EMBEDDING_WIDTH + k);
            count += e > 0.0f;
        }
    }
#endif
    for (l = 0;; ++l) {
        const unsigned n = layers[l].outputs;
#if LAPLACE && LAPLACE_READS_HIDDEN
        if (l + 1 == LAYERS) {
            add_rows(0, w->value, w->index, count, w->laplace);
        }
#endif
        for (; count % 4 != 0; ++count) {
            w->value[count] = 0.0f;
            w->index[count] = 0;
        }
        i = 0;
        do {
            w->raw[i] = layers[l].bias[i];
        } while (++i < n);
#if HALVES && SINGLES
        (layers[l].single != 0 ? add_singles : add_halves)(layers + l, w->value, w->index, count,
                                                           w->raw);
#elif HALVES
        add_halves(layers + l, w->value, w->index, count, w->raw);
#else
        add_singles(layers + l, w->value, w->index, count, w->raw);
#endif
        if (l + 1 == LAYERS) {
#if LIVE || NARROWED
            w->count = count;
#endif
            return status;
        }
        /* ReLU made the others zero, and they add nothing: this is exact. */
        count = i = 0;
        do {
            const float h = w->raw[i];
#if HALVES
            w->value[count] = h * layers[l + 1].gain;
#else
            w->value[count] = h;
#endif
            w->index[count] = (uint16_t)i;
#if DROPOUT
            count += (h > 0.0f) & kept();
#else
            count += h > 0.0f;
#endif
        } while (++i < n);
    }
}
