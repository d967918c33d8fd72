#include <stdint.h>

#include "switches.h"

#if INT8
/* Wide registers read past the last block. */
#if defined(__SSE2__) || defined(__x86_64__) || defined(__ARM_NEON) || defined(__wasm_simd128__)
#define PAD 256
#elif defined(__ARM_FEATURE_MVE)
#define PAD 16
/* Groups are gathered as words. */
extern const int8_t model_weights[] __attribute__((aligned(4)));
#else
#define PAD 0
#endif
#endif

#include "tables.h"
