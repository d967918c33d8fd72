
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
static void add_columns(const layer *l, const float *restrict value,
                        const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    const unsigned n = l->outputs;
    unsigned c, j;
    for (c = 0; c < count; c += 4) {
        const uint16_t *restrict p = l->weight + (size_t)index[c] * n;
        const uint16_t *restrict q = l->weight + (size_t)index[c + 1] * n;
        const uint16_t *restrict r = l->weight + (size_t)index[c + 2] * n;
        const uint16_t *restrict s = l->weight + (size_t)index[c + 3] * n;
        const float a = value[c], b = value[c + 1], d = value[c + 2], e = value[c + 3];
        j = 0;
#if defined(__F16C__) && defined(__AVX2__) && defined(__FMA__)
        for (; j + 8 <= n; j += 8) {
            __m256 t = _mm256_loadu_ps(sum + j);
            t = _mm256_fmadd_ps(_mm256_set1_ps(a), HALVES(p + j), t);
            t = _mm256_fmadd_ps(_mm256_set1_ps(b), HALVES(q + j), t);
            t = _mm256_fmadd_ps(_mm256_set1_ps(d), HALVES(r + j), t);
            t = _mm256_fmadd_ps(_mm256_set1_ps(e), HALVES(s + j), t);
            _mm256_storeu_ps(sum + j, t);
        }
#endif
        for (; j < n; ++j) {
            sum[j] += (a * widen(p[j]) + b * widen(q[j])) + (d * widen(r[j]) + e * widen(s[j]));
        }
    }
}
