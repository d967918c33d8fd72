/* add_groups with WebAssembly's relaxed dot product: four outputs of a group of four in one
   instruction, the same everywhere as long as activations have seven bits. */
#include <wasm_simd128.h>

#include "int8_word.h"

#define LISTED

#define SIGNED

/* sum[0..n) += scale W (x & mask) for one block of n outputs, of the count groups that group names,
   or without it of the first count ones. */
OUT_OF_LINE void add_groups(const int8_t *w, const uint8_t *x, unsigned mask, int32_t scale,
                            const uint16_t *group, unsigned count, unsigned n,
                            int32_t *restrict sum)
{
    const uint32_t kept = mask * 0x01010101u;
    const unsigned shift = mask == 128 ? 7 : 0;
    unsigned g, j, k;
    for (j = 0; j < n; j += 32) {
        v128_t s[8];
        for (k = 0; k < 8; ++k) {
            s[k] = wasm_i32x4_const_splat(0);
        }
        for (g = 0; g < count; ++g) {
            const unsigned at = group == 0 ? g : group[g];
            const int8_t *p = w + 4 * (n * at + j);
            const v128_t four = wasm_u32x4_splat((four_of(x + 4 * at) & kept) >> shift);
            for (k = 0; k < 8; ++k) {
                s[k] =
                    wasm_i32x4_relaxed_dot_i8x16_i7x16_add(wasm_v128_load(p + 16 * k), four, s[k]);
            }
        }
        for (k = 0; k < 8; ++k) {
            int32_t *to = sum + j + 4 * k;
            const v128_t found = wasm_i32x4_mul(s[k], wasm_i32x4_splat(scale << shift));
            wasm_v128_store(to, wasm_i32x4_add(wasm_v128_load(to), found));
        }
    }
}
