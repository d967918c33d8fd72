/* Periodic embeddings of the inputs: max(0, W [sin, cos](2 pi c z) + b), each input's own. */

typedef struct {
    float wave[2 * FREQUENCIES]; /* sines, then cosines */
    float value[EMBEDDING_WIDTH];
} embedding;

/* sin(2 pi t) for |t| <= 1/4. */
static float quarter_sine(float t)
{
    const float u = t * t;
    float p = 39.53670502f;
    p = p * u - 76.5497818f;
    p = p * u + 81.60100555f;
    p = p * u - 41.34165573f;
    p = p * u + 6.283185005f;
    return p * t;
}

/* Sine and cosine of so many periods, |periods| < 2^23; absolute error at most 3e-7. Whole periods
   are taken off exactly, so it holds for large ones too. Signs are bits, as in numbers.h, for
   compilers that run it in many lanes at once. */
static void sine_cosine(float periods, float *sine, float *cosine)
{
    word half, rest, size, from, s;
    half.value = periods;
    half.bits = (half.bits & 0x80000000u) | 0x3f000000u; /* 0.5 with the sign of periods */
    rest.value = periods - (float)(int32_t)(periods + half.value);
    size.bits = rest.bits & 0x7fffffffu;
    from.value = size.value - 0.25f; /* the nearer quarter */
    from.bits &= 0x7fffffffu;
    s.value = quarter_sine(0.25f - from.value);
    s.bits ^= rest.bits & 0x80000000u;
    *sine = s.value;
    *cosine = quarter_sine(0.25f - size.value);
}

/* The embedding of input i, z standard deviations from its mean; it does not change beyond
   EMBEDDING_REACH, and an input that is NaN counts as its mean. */
static void embed(unsigned i, float z, embedding *restrict to)
{
    const float *frequency = model_frequency + (size_t)i * FREQUENCIES;
    const float *restrict w =
        model_embedding_weight + (size_t)i * 2 * FREQUENCIES * EMBEDDING_WIDTH;
    unsigned f, k;
    if (size_of(z) > size_of(EMBEDDING_REACH)) {
        z = size_of(z) > INFINITE ? 0.0f : z > 0.0f ? EMBEDDING_REACH : -EMBEDDING_REACH;
    }
    for (f = 0; f < FREQUENCIES; ++f) {
        sine_cosine(frequency[f] * z, to->wave + f, to->wave + FREQUENCIES + f);
    }
    for (k = 0; k < EMBEDDING_WIDTH; ++k) {
        to->value[k] = model_embedding_bias[i * EMBEDDING_WIDTH + k];
    }
    for (f = 0; f < FREQUENCIES; ++f, w += EMBEDDING_WIDTH) {
        const float *restrict v = w + FREQUENCIES * EMBEDDING_WIDTH;
        const float sine = to->wave[f], cosine = to->wave[FREQUENCIES + f];
        for (k = 0; k < EMBEDDING_WIDTH; ++k) {
            to->value[k] += sine * w[k] + cosine * v[k];
        }
    }
    for (k = 0; k < EMBEDDING_WIDTH; ++k) {
        to->value[k] = to->value[k] > 0.0f ? to->value[k] : 0.0f;
    }
}
