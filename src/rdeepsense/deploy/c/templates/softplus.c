
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
