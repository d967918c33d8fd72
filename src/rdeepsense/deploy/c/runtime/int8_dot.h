/* add_groups with NEON's dot product: four outputs of a group of four in one instruction. */
#include <arm_neon.h>

#include "int8_word.h"

#define LISTED

#if defined(__ARM_FEATURE_MATMUL_INT8)
#define DOT(s, v) s = vusdotq_s32(s, vreinterpretq_u8_u32(four), v)
#else
#define SIGNED /* 128 is read as -128 then, and taken off */
#define DOT(s, v) s = vdotq_s32(s, v, vreinterpretq_s8_u32(four))
#endif

/* Sixteen sums, which stay in registers. */
#define BEGIN(s, k) int32x4_t s##0 = zero, s##1 = zero, s##2 = zero, s##3 = zero;
#define DOTS(s, k)                                     \
    {                                                  \
        const int8x16x4_t v = vld1q_s8_x4(p + 64 * k); \
        DOT(s##0, v.val[0]);                           \
        DOT(s##1, v.val[1]);                           \
        DOT(s##2, v.val[2]);                           \
        DOT(s##3, v.val[3]);                           \
    }
#define END(s, k)                             \
    add_four(s##0, factor, sum + 16 * k);     \
    add_four(s##1, factor, sum + 16 * k + 4); \
    add_four(s##2, factor, sum + 16 * k + 8); \
    add_four(s##3, factor, sum + 16 * k + 12);
#define EACH(DO) DO(a, 0) DO(b, 1) DO(c, 2) DO(d, 3)

static void add_four(int32x4_t s, int32_t factor, int32_t *sum)
{
    vst1q_s32(sum, vmlaq_n_s32(vld1q_s32(sum), s, factor));
}

/* sum[0..n) += scale W (x & mask) for one block of n outputs, of the count groups that group names,
   or without it of the first count ones. */
OUT_OF_LINE void add_groups(const int8_t *w, const uint8_t *x, unsigned mask, int32_t scale,
                            const uint16_t *group, unsigned count, unsigned n,
                            int32_t *restrict sum)
{
    const int32_t factor = mask == 128 ? -scale : scale;
    const int32x4_t zero = vdupq_n_s32(0);
    const uint32_t kept = mask * 0x01010101u;
    const size_t stride = 4 * (size_t)n;
    unsigned g;
    EACH(BEGIN)
    if (n <= 16) {
        for (g = 0; g < count; ++g) {
            const size_t at = group == 0 ? g : group[g];
            const int8_t *p = w + stride * at;
            const uint32x4_t four = vdupq_n_u32(four_of(x + 4 * at) & kept);
            DOTS(a, 0)
        }
        END(a, 0)
        return;
    }
    for (g = 0; g < count; ++g) {
        const size_t at = group == 0 ? g : group[g];
        const int8_t *p = w + stride * at;
        const uint32x4_t four = vdupq_n_u32(four_of(x + 4 * at) & kept);
        EACH(DOTS)
    }
    EACH(END)
}
