/* What a layer does beside its products, four numbers at a time: conversions, products and
   comparisons, one after the other, so the bits are those of plain C. Each function says how many
   numbers it did; the caller does the few that are left. */

#if INT8
#if defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)
#include <arm_neon.h>

typedef int32x4_t whole;
typedef float32x4_t real;
#define WHOLE(p) vld1q_s32(p)
#define REAL(p) vld1q_f32(p)
#define ALL(value) vdupq_n_f32(value)
#define TO_REAL(v) vcvtq_f32_s32(v)
#define TO_WHOLE(v) vcvtq_s32_f32(v)
#define PRODUCT(a, b) vmulq_f32(a, b)
#define LARGER(a, b) vmaxq_f32(a, b)
#define POSITIVE(v) vmaxq_s32(v, vdupq_n_s32(0))
#define HALVED(v) vrshrq_n_s32(v, 1)
#define STORE(p, v) vst1q_s32(p, v)
#define STORE_REAL(p, v) vst1q_f32(p, v)
static void store_bytes(uint8_t *p, whole v)
{
    const uint16x4_t some = vmovn_u32(vreinterpretq_u32_s32(v));
    const uint8x8_t bytes = vmovn_u16(vcombine_u16(some, some));
    vst1_lane_u32((uint32_t *)(void *)p, vreinterpret_u32_u8(bytes), 0);
}
#elif defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE >= 2
#include <arm_mve.h>

typedef int32x4_t whole;
typedef float32x4_t real;
#define WHOLE(p) vld1q_s32(p)
#define REAL(p) vld1q_f32(p)
#define ALL(value) vdupq_n_f32(value)
#define TO_REAL(v) vcvtq_f32_s32(v)
#define TO_WHOLE(v) vcvtq_s32_f32(v)
#define PRODUCT(a, b) vmulq_f32(a, b)
#define LARGER(a, b) vmaxnmq_f32(a, b)
#define POSITIVE(v) vmaxq_s32(v, vdupq_n_s32(0))
#define HALVED(v) vrshrq_n_s32(v, 1)
#define STORE(p, v) vst1q_s32(p, v)
#define STORE_REAL(p, v) vst1q_f32(p, v)
#define store_bytes(p, v) vstrbq_s32((int8_t *)(p), v)

/* sum = 256 sum + bias. */
static unsigned shift_lanes(const float *bias, unsigned n, int32_t *restrict sum)
{
    unsigned i;
    for (i = 0; i < n / 4 * 4; i += 4) {
        STORE(sum + i, vaddq_s32(vshlq_n_s32(WHOLE(sum + i), 8), TO_WHOLE(REAL(bias + i))));
    }
    return i;
}
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>

typedef v128_t whole;
typedef v128_t real;
#define WHOLE(p) wasm_v128_load(p)
#define REAL(p) wasm_v128_load(p)
#define ALL(value) wasm_f32x4_splat(value)
#define TO_REAL(v) wasm_f32x4_convert_i32x4(v)
#define TO_WHOLE(v) wasm_i32x4_trunc_sat_f32x4(v)
#define PRODUCT(a, b) wasm_f32x4_mul(a, b)
#define LARGER(a, b) wasm_f32x4_max(a, b)
#define POSITIVE(v) wasm_i32x4_max(v, wasm_i32x4_const_splat(0))
#define HALVED(v) wasm_i32x4_shr(wasm_i32x4_add(v, wasm_i32x4_const_splat(1)), 1)
#define STORE(p, v) wasm_v128_store(p, v)
#define STORE_REAL(p, v) wasm_v128_store(p, v)
static void store_bytes(uint8_t *p, whole v)
{
    const v128_t some = wasm_i16x8_narrow_i32x4(v, v);
    wasm_v128_store32_lane(p, wasm_u8x16_narrow_i16x8(some, some), 0);
}
#else
#define begin_lanes(bias, per, n, sum) 0
#define shift_lanes(bias, n, sum) 0
#define largest_lanes(sum, factor, n, top) 0
#define byte_lanes(sum, factor, per, n, byte) 0
#endif

#ifdef WHOLE
/* sum = bias per, without its fraction. */
static unsigned begin_lanes(const float *bias, float per, unsigned n, int32_t *restrict sum)
{
    unsigned i;
    for (i = 0; i < n / 4 * 4; i += 4) {
        STORE(sum + i, TO_WHOLE(PRODUCT(REAL(bias + i), ALL(per))));
    }
    return i;
}

/* top = the largest of sum factor, or top. */
static unsigned largest_lanes(const int32_t *restrict sum, const float *restrict factor, unsigned n,
                              float *top)
{
    real part = ALL(*top);
    float each[4];
    unsigned i, k;
    for (i = 0; i < n / 4 * 4; i += 4) {
        part = LARGER(part, PRODUCT(TO_REAL(WHOLE(sum + i)), REAL(factor + i)));
    }
    STORE_REAL(each, part);
    for (k = 0; k < 4; ++k) {
        *top = each[k] > *top ? each[k] : *top;
    }
    return i;
}

/* byte = (sum factor per + 1) / 2 of what is above zero. */
static unsigned byte_lanes(const int32_t *restrict sum, const float *restrict factor, float per,
                           unsigned n, uint8_t *restrict byte)
{
    unsigned i;
    for (i = 0; i < n / 4 * 4; i += 4) {
        const real h = PRODUCT(TO_REAL(POSITIVE(WHOLE(sum + i))), REAL(factor + i));
        store_bytes(byte + i, HALVED(TO_WHOLE(PRODUCT(h, ALL(per)))));
    }
    return i;
}
#endif
#endif
