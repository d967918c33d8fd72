
#define INFINITE 0x7f800000u

/* |x| as an integer that orders like it, with NaN last: -ffast-math cannot take that away. */
static uint32_t size_of(float x)
{
    word w;
    w.value = x;
    return w.bits & 0x7fffffffu;
}
