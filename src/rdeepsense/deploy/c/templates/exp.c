typedef union {
    float value;
    uint32_t bits;
} word;

/* Comparisons are of bits where they can be: a float's could trap, so no compiler would run it in
   many lanes at once. */

/* e^-|x|, but e^-87 beyond 87 and for NaN; relative error at most 3e-7. */
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
