/* add_groups with NEON: sixteen outputs at a time, a group taken apart by the load. */
#include <arm_neon.h>

#include "int8_word.h"

#define LISTED

/* Input k of a group. */
#define ADD(k)                                                   \
    {                                                            \
        const int16x8_t low = vmovl_s8(vget_low_s8(v.val[k]));   \
        const int16x8_t high = vmovl_s8(vget_high_s8(v.val[k])); \
        a = vmlal_lane_s16(a, vget_low_s16(low), four, k);       \
        b = vmlal_lane_s16(b, vget_high_s16(low), four, k);      \
        c = vmlal_lane_s16(c, vget_low_s16(high), four, k);      \
        d = vmlal_lane_s16(d, vget_high_s16(high), four, k);     \
    }

static void add_four(int32x4_t s, int32_t scale, int32_t *sum)
{
    vst1q_s32(sum, vmlaq_n_s32(vld1q_s32(sum), s, scale));
}

/* sum[0..n) += scale W (x & mask) for one block of n outputs, of the count groups that group names,
   or without it of the first count ones. */
OUT_OF_LINE void add_groups(const int8_t *w, const uint8_t *x, unsigned mask, int32_t scale,
                            const uint16_t *group, unsigned count, unsigned n,
                            int32_t *restrict sum)
{
    unsigned g, j;
    (void)mask;
    for (j = 0; j < n; j += 16) {
        int32x4_t a = vdupq_n_s32(0), b = a, c = a, d = a;
        for (g = 0; g < count; ++g) {
            const size_t at = group == 0 ? g : group[g];
            const int8x16x4_t v = vld4q_s8(w + 4 * j + 4 * (size_t)n * at);
            const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(four_of(x + 4 * at)));
            const int16x4_t four = vreinterpret_s16_u16(vget_low_u16(vmovl_u8(bytes)));
            ADD(0)
            ADD(1)
            ADD(2)
            ADD(3)
        }
        add_four(a, scale, sum + j);
        add_four(b, scale, sum + j + 4);
        add_four(c, scale, sum + j + 8);
        add_four(d, scale, sum + j + 12);
    }
}
