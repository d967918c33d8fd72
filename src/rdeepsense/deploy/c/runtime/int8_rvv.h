/* add_groups with RISC-V's vectors, however long: a group taken apart by the load. */
#include <riscv_vector.h>

#include "int8_word.h"

#define LISTED

/* Input k of a group. */
#define ADD(k)                  \
    s = __riscv_vwadd_wv_i32m4( \
        s, __riscv_vwmulsu_vx_i16m2(__riscv_vget_v_i8m1x4_i8m1(v, k), x[4 * at + k], vl), vl);

/* sum[0..n) += scale W (x & mask) for one block of n outputs, of the count groups that group names,
   or without it of the first count ones. */
OUT_OF_LINE void add_groups(const int8_t *w, const uint8_t *x, unsigned mask, int32_t scale,
                            const uint16_t *group, unsigned count, unsigned n,
                            int32_t *restrict sum)
{
    size_t vl, j;
    unsigned g;
    (void)mask;
    for (j = 0; j < n; j += vl) {
        vint32m4_t s;
        vl = __riscv_vsetvl_e8m1(n - j);
        s = __riscv_vmv_v_x_i32m4(0, vl);
        for (g = 0; g < count; ++g) {
            const size_t at = group == 0 ? g : group[g];
            const vint8m1x4_t v = __riscv_vlseg4e8_v_i8m1x4(w + 4 * (n * at + j), vl);
            ADD(0)
            ADD(1)
            ADD(2)
            ADD(3)
        }
        s = __riscv_vmacc_vx_i32m4(__riscv_vle32_v_i32m4(sum + j, vl), scale, s, vl);
        __riscv_vse32_v_i32m4(sum + j, s, vl);
    }
}
