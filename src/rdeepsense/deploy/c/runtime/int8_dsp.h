/* add_block with SMLAD: two products in one instruction. */
#include <arm_acle.h>

#include "int8_word.h"

#define EVEN(four) ((int16x2_t)((four)&0x00ff00ffu))
#define ODD(four) ((int16x2_t)((four)&0xff00ff00u))
OUT_OF_LINE void add_block(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                           int32_t *restrict sum)
{
    unsigned g, j;
    /* Two groups at a time halve the traffic to and from sum. */
    for (g = 0; g + 2 <= groups; g += 2, w += 4 * n) {
        const uint32_t first = four_of(x + 4 * g), second = four_of(x + 4 * g + 4);
        const int16x2_t a = EVEN(first), b = EVEN(first >> 8);
        const int16x2_t c = EVEN(second), d = EVEN(second >> 8);
        UNROLLED
        for (j = 0; j < n; ++j, w += 4) {
            const uint32_t u = four_of(w), v = four_of(w + 4 * n);
            /* Odd weights stay where they are, which multiplies them by 256. */
            const int32_t odd = __smlad(ODD(v), d, __smuad(ODD(u), b));
            const int32_t even = __smlad(__sxtb16((int8x4_t)u), a, sum[j]);
            sum[j] = __smlad(__sxtb16((int8x4_t)v), c, even) + (odd >> 8);
        }
    }
    for (; g < groups; ++g) {
        for (j = 0; j < n; ++j, w += 4) {
            sum[j] +=
                x[4 * g] * w[0] + x[4 * g + 1] * w[1] + x[4 * g + 2] * w[2] + x[4 * g + 3] * w[3];
        }
    }
}
