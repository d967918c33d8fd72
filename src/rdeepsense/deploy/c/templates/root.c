
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
