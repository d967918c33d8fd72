#include <stdint.h>

#include "switches.h"

#if INT8 || BYTES
/* Wide registers read past the last block. */
#if defined(__SSE2__) || defined(__x86_64__) || defined(__ARM_NEON) || defined(__wasm_simd128__)
#define PAD 256
#elif defined(__ARM_FEATURE_MVE)
#define PAD 16
#else
#define PAD 0
#endif
#elif HALVES
/* Strips of outputs go past the last column. */
#if defined(__SSE2__) || defined(__x86_64__) || defined(__ARM_NEON)
#define PAD 16
#else
#define PAD 0
#endif
#endif

#if INT8 || BYTES || MANY
/* Wide registers read no cache line twice. */
#if defined(__GNUC__) && (defined(__SSE2__) || defined(__aarch64__))
#define ON_A_LINE __attribute__((aligned(64)))
#elif defined(__ARM_FEATURE_MVE)
#define ON_A_LINE __attribute__((aligned(4))) /* groups are gathered as words */
#else
#define ON_A_LINE
#endif
#endif

#include "tables.h"
