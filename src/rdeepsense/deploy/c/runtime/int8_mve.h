/* add_block with Helium: four outputs at a time, gathered. */
#include <arm_mve.h>

static void add_block(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                      int32_t *restrict sum)
{
    const uint32x4_t first = vidupq_n_u32(0, 4), second = vaddq_n_u32(first, 1);
    const uint32x4_t third = vaddq_n_u32(first, 2), fourth = vaddq_n_u32(first, 3);
    unsigned g, j;
    for (j = 0; j < n; j += 4) {
        const int8_t *p = w + 4 * j;
        const uint8_t *from = x;
        int32x4_t s = vldrwq_s32(sum + j);
        for (g = 0; g < groups; ++g, p += 4 * n, from += 4) {
            s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p, first), from[0]);
            s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p, second), from[1]);
            s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p, third), from[2]);
            s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p, fourth), from[3]);
        }
        vstrwq_s32(sum + j, s);
    }
}
