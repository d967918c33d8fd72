/* add_groups with WebAssembly's SIMD: bytes widened, then pairs of products. */
#include <wasm_simd128.h>

#include "int8_word.h"

#define LISTED

/* sum[0..n) += scale W (x & mask) for one block of n outputs, of the count groups that group names,
   or without it of the first count ones. */
OUT_OF_LINE void add_groups(const int8_t *w, const uint8_t *x, unsigned mask, int32_t scale,
                            const uint16_t *group, unsigned count, unsigned n,
                            int32_t *restrict sum)
{
    unsigned g, j, k;
    (void)mask;
    for (j = 0; j < n; j += 16) {
        v128_t s[8];
        for (k = 0; k < 8; ++k) {
            s[k] = wasm_i32x4_const_splat(0);
        }
        for (g = 0; g < count; ++g) {
            const unsigned at = group == 0 ? g : group[g];
            const int8_t *p = w + 4 * (n * at + j);
            const v128_t four = wasm_u16x8_extend_low_u8x16(wasm_v128_load32_splat(x + 4 * at));
            for (k = 0; k < 8; ++k) {
                const v128_t products = wasm_i32x4_dot_i16x8(wasm_i16x8_load8x8(p + 8 * k), four);
                s[k] = wasm_i32x4_add(s[k], products);
            }
        }
        for (k = 0; k < 4; ++k) {
            int32_t *to = sum + j + 4 * k;
            const v128_t even = wasm_i32x4_shuffle(s[2 * k], s[2 * k + 1], 0, 2, 4, 6);
            const v128_t odd = wasm_i32x4_shuffle(s[2 * k], s[2 * k + 1], 1, 3, 5, 7);
            const v128_t found = wasm_i32x4_mul(wasm_i32x4_add(even, odd), wasm_i32x4_splat(scale));
            wasm_v128_store(to, wasm_i32x4_add(wasm_v128_load(to), found));
        }
    }
}
