/* Functions of one number, without a library. */
#include <stdint.h>

#define INFINITE 0x7f800000u

typedef union {
    float value;
    uint32_t bits;
} word;

/* |x| as an integer that orders like it, with NaN last: -ffast-math cannot take that away. */
static uint32_t size_of(float x)
{
    word w;
    w.value = x;
    return w.bits & 0x7fffffffu;
}

#if USES_SOFTPLUS || USES_EXP || CLASSES || SIGMOIDAL || TANGENTIAL
/* e^-|x|, but e^-87 beyond 87 and for NaN; relative error at most 3e-7. Comparisons are of bits: a
   float's could trap, so no compiler would run it in many lanes at once. */
static float exp_of_minus(float x)
{
    word a;
    float n, r, p;
    int32_t k;
    a.value = x;
    a.bits &= 0x7fffffffu;
    a.bits = a.bits < 0x42ae0000u ? a.bits : 0x42ae0000u;
    k = (int32_t)(a.value * 1.44269504f + 0.5f);
    n = (float)k;
    r = (n * 0.693359375f - a.value) - n * 2.12194440e-4f;
    p = 1.39487005e-3f;
    p = p * r + 8.3752127e-3f;
    p = p * r + 4.16662165e-2f;
    p = p * r + 1.66664145e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    a.bits = (uint32_t)(127 - k) << 23;
    return p * a.value;
}
#endif

#if USES_EXP
/* e^x, but e^87 above 87 and e^-87 below -87 and for NaN, so always finite; relative error at most
   4e-7. */
static float exp_of(float x)
{
    const float t = exp_of_minus(x);
    return x > 0.0f ? 1.0f / t : t;
}
#endif

#if USES_SOFTPLUS
/* log(1 + e^v) = max(v, 0) + log(1 + t) with t = e^-|v|; relative error at most 6e-7 for
   v >= -87, and never below e^-87. */
static float softplus(float v)
{
    word a;
    float t = exp_of_minus(v);
    /* log(1 + t) = 2 artanh(s) */
    float s = t / (2.0f + t);
    float u = s * s;
    float p = 0.281746573f;
    p = p * u + 0.279614188f;
    p = p * u + 0.400248537f;
    p = p * u + 0.666663159f;
    p = p * u + 2.0f;
    a.value = v;
    a.bits &= 0x7fffffffu;
    return 0.5f * (v + a.value) + s * p;
}
#endif

#if USES_SQRT
/* Square root of a normal positive number, by Newton's steps; relative error at most 4e-7. */
static float root(float x)
{
    word y;
    float half = 0.5f * x;
    y.value = x;
    y.bits = 0x5f3759dfu - (y.bits >> 1);
    y.value *= 1.5f - half * y.value * y.value;
    y.value *= 1.5f - half * y.value * y.value;
    y.value *= 1.5f - half * y.value * y.value;
    return x * y.value;
}
#endif

#if USES_SQUARE
static float square(float x)
{
    return x * x;
}
#endif

#if LIVE || SPECTRAL || SMOOTHED
/* log((1 + s) / (1 - s)) for |s| <= 1/3. */
static float twice_artanh(float s)
{
    const float u = s * s;
    float p = 0.281746573f;
    p = p * u + 0.279614188f;
    p = p * u + 0.400248537f;
    p = p * u + 0.666663159f;
    p = p * u + 2.0f;
    return s * p;
}

/* log x of a normal positive number; where it is below 1, absolute, else relative error at most
   2e-7. */
static float log_of(float x)
{
    word m;
    int32_t k;
    m.value = x;
    /* x = 2^k m, m from the root of 1/2 to that of 2 */
    k = (int32_t)((m.bits - 0x3f3504f3u) >> 23);
    k = k > 255 ? k - 512 : k;
    m.bits -= (uint32_t)k << 23;
    return ((float)k * -2.12194440e-4f + twice_artanh((m.value - 1.0f) / (m.value + 1.0f))) +
           (float)k * 0.693359375f;
}
#endif

#if TAILS
/* log(1 + u) of a finite number u >= 0; relative error at most 5e-7. */
static float log_of_one_plus(float u)
{
    return u < 1.0f ? twice_artanh(u / (2.0f + u)) : log_of(1.0f + u);
}
#endif

#if SIGMOIDAL || TANGENTIAL
/* The hyperbolic tangent; absolute error at most 4e-7. The sign is a bit, as above. */
static float tanh_of(float x)
{
    const float t = exp_of_minus(2.0f * x);
    word from, size;
    from.value = x;
    size.value = (1.0f - t) / (1.0f + t);
    size.bits |= from.bits & 0x80000000u;
    return size.value;
}
#endif

#if SIGMOIDAL
/* 1 / (1 + e^-x); absolute error at most 3e-7. */
static float sigmoid_of(float x)
{
    return 0.5f + 0.5f * tanh_of(0.5f * x);
}
#endif
