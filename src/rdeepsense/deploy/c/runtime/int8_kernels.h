/* Layers of bytes: sums of weights times activations, exact in 32 bits, and so the same on every
   processor. A block is of at most BLOCK outputs; in it lie groups of four inputs, in a group
   output by output. */

typedef struct {
    const int8_t *weight;
    const float *bias;
    const float *factor;
    float least;     /* 255 times the smallest step of what it writes */
    uint16_t groups; /* of four inputs */
    uint16_t outputs;
} layer;

#define BLOCK 64

/* How many outputs the block that begins with this one has. */
static unsigned block_of(unsigned outputs, unsigned first)
{
    return outputs - first < BLOCK ? outputs - first : BLOCK;
}

/* For loops that need all registers: amid a whole network they would not get them. */
#if defined(__GNUC__)
#define OUT_OF_LINE static __attribute__((noinline))
#else
#define OUT_OF_LINE static
#endif

#include "int8_lanes.h"

/* For loops of a few instructions; those that lanes leave three turns are to be short. */
#if defined(__SSE2__) || defined(__clang__) || !defined(__GNUC__)
#define UNROLLED
#else
#ifdef WHOLE
#define UNROLLED _Pragma("GCC unroll 1")
#else
#define UNROLLED _Pragma("GCC unroll 4")
#endif
#endif

/* add_inputs(layer, high, low, sum): sum = b + W x of the first layer, whose numbers have two
   bytes. add_products(layer, x, room, sum): sum += W x of bytes; room is for the numbers of all
   groups. They are made of add_block, of every group, or add_some, of those that are not zero:
   sum[0..n) += W x for one block of n outputs. Wide registers go past n, into room left for that.
 */
#if defined(__SSE2__)
#include "int8_skipping.h"
#elif defined(__ARM_FEATURE_DOTPROD) && defined(__AARCH64EL__)
#include "int8_dot.h"
#elif defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)
#include "int8_neon.h"
#elif defined(__wasm_relaxed_simd__)
#include "int8_relaxed.h"
#elif defined(__wasm_simd128__)
#include "int8_wasm.h"
#elif defined(__riscv_vector) && defined(__riscv_v_intrinsic) && __riscv_v_intrinsic >= 12000
#include "int8_rvv.h"
#elif defined(__ARM_FEATURE_MVE)
#include "int8_mve.h"
#elif defined(__ARM_FEATURE_DSP) && defined(__ARMEL__)
#include "int8_dsp.h"
#else
#include "int8_portable.h"
#endif

#ifdef LISTED
#include "int8_listed.h"
#elif !defined(__SSE2__)
#include "int8_dense.h"
#endif
