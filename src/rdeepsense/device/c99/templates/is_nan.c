
/* By its bits, so that -ffast-math cannot take the question away. */
static int is_nan(float x)
{
    word w;
    w.value = x;
    return (w.bits & 0x7fffffffu) > 0x7f800000u;
}
