/* add_block with Helium: sixteen inputs of an output in one instruction, which wants both factors
   unsigned. So weights are read 128 larger: W x = (W + 128) x - 128 (x_1 + x_2 + ...). */
#include <arm_mve.h>

/* Sixteen products of an output, whose groups are the words that far behind p. */
#define PRODUCTS(far) \
    vmladavq_u8(some, veorq_u8(offset, vreinterpretq_u8_u32(vldrwq_gather_offset_u32(p, far))))

OUT_OF_LINE void add_block(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                           int32_t *restrict sum)
{
    const uint8x16_t offset = vdupq_n_u8(128);
    const uint32x4_t step = vmulq_n_u32(vidupq_n_u32(0, 4), n);
    unsigned g, j;
    for (g = 0; g < groups; g += 4, w += 16 * n) {
        const unsigned last = groups - g < 4 ? groups - g - 1 : 3;
        const uint8x16_t some = vld1q_z_u8(x + 4 * g, vctp8q(4 * last + 4));
        const uint32x4_t first = vminq_u32(step, vdupq_n_u32(4 * n * last));
        const uint32x4_t second = vaddq_n_u32(first, 4), third = vaddq_n_u32(first, 8);
        const uint32x4_t fourth = vaddq_n_u32(first, 12);
        const uint32_t *p = (const uint32_t *)(const void *)w; /* a word is a group of an output */
        const uint32_t less = 128 * vaddvq_u8(some);
        int32_t *to = sum;
        for (j = (n + 3) / 4; j > 0; --j, to += 4, p += 4) {
            uint32x4_t s = vdupq_n_u32(PRODUCTS(first));
            s = vsetq_lane_u32(PRODUCTS(second), s, 1);
            s = vsetq_lane_u32(PRODUCTS(third), s, 2);
            s = vsetq_lane_u32(PRODUCTS(fourth), s, 3);
            s = vaddq_u32(s, vreinterpretq_u32_s32(vldrwq_s32(to)));
            vstrwq_s32(to, vreinterpretq_s32_u32(vsubq_n_u32(s, less)));
        }
    }
}
