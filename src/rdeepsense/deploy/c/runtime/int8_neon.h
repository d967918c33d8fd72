/* add_block with NEON: eight outputs at a time, a group taken apart by the load. */
#include <arm_neon.h>

static void add_block(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                      int32_t *restrict sum)
{
    unsigned g, j, k;
    for (j = 0; j < n; j += 8) {
        const int8_t *p = w + 4 * j;
        int32x4_t low = vld1q_s32(sum + j), high = vld1q_s32(sum + j + 4);
        for (g = 0; g < groups; ++g, p += 4 * n) {
            const int8x8x4_t v = vld4_s8(p);
            for (k = 0; k < 4; ++k) {
                const int16x8_t wide = vmovl_s8(v.val[k]);
                low = vmlal_n_s16(low, vget_low_s16(wide), x[4 * g + k]);
                high = vmlal_n_s16(high, vget_high_s16(wide), x[4 * g + k]);
            }
        }
        vst1q_s32(sum + j, low);
        vst1q_s32(sum + j + 4, high);
    }
}
