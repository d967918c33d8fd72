/* What a layer does beside its products, four numbers at a time: conversions, products and
   comparisons, one after the other, so the bits are those of plain C. Each function says how many
   numbers it did; the caller does the few that are left. What counts is as wide as an address,
   which saves an instruction. */

#if INT8
#if defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)
#include <arm_neon.h>

typedef int32x4_t whole;
typedef uint32x4_t sizes;
typedef float32x4_t real;
typedef uint32x4_t truth;
#define WHOLE(p) vld1q_s32(p)
#define REAL(p) vld1q_f32(p)
#define ALL(value) vdupq_n_f32(value)
#define TO_REAL(v) vcvtq_f32_s32(v)
#define TO_WHOLE(v) vcvtq_s32_f32(v)
#define PRODUCT(a, b) vmulq_f32(a, b)
#define PLUS(a, b) vaddq_f32(a, b)
#define MINUS(a, b) vsubq_f32(a, b)
#define WITH(v, value) vaddq_s32(v, vdupq_n_s32(value))
#define LARGER(a, b) vmaxq_f32(a, b)
#define POSITIVE(v) vmaxq_s32(v, vdupq_n_s32(0))
#define WITHIN(v, most) vminq_s32(vmaxq_s32(v, vdupq_n_s32(-(most))), vdupq_n_s32(most))
#define NO_SIZE vdupq_n_u32(0)
#define SIZE(v) vreinterpretq_u32_f32(v)
#define TWICE_SIZE(v) vshlq_n_u32(SIZE(v), 1)
#define FURTHER(v, by) vaddq_u32(v, vdupq_n_u32(by))
#define LARGER_SIZE(a, b) vmaxq_u32(a, b)
#define ALL_TRUE vdupq_n_u32(~0u)
#define AND_BETWEEN(t, low, v, high) vandq_u32(t, vandq_u32(BELOW(low, v), BELOW(v, high)))
#define HOLDS(t) (LARGEST(vmvnq_u32(t)) < 0x80000000u)
#define HALVED(v) vrshrq_n_s32(v, 1)
#define STORE(p, v) vst1q_s32(p, v)
#define STORE_REAL(p, v) vst1q_f32(p, v)
static void store_four(uint8_t *p, uint8x8_t bytes)
{
    vst1_lane_u32((uint32_t *)(void *)p, vreinterpret_u32_u8(bytes), 0);
}
static void store_bytes(uint8_t *p, whole v)
{
    const uint16x4_t some = vmovn_u32(vreinterpretq_u32_s32(v));
    store_four(p, vmovn_u16(vcombine_u16(some, vdup_n_u16(0))));
}
#if defined(__aarch64__)
#define LARGEST(v) vmaxvq_u32(v)
#define BELOW(a, b) vcltq_f32(a, b)
#else
static uint32_t LARGEST(sizes v)
{
    const uint32x2_t two = vpmax_u32(vget_low_u32(v), vget_high_u32(v));
    return vget_lane_u32(vpmax_u32(two, two), 0);
}
#define BELOW(a, b) SIZE(vsubq_f32(a, b)) /* the sign; gcc compares floats one by one here */
#endif
#elif defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE >= 2
#include <arm_mve.h>

typedef int32x4_t whole;
typedef uint32x4_t sizes;
typedef float32x4_t real;
typedef mve_pred16_t truth;
#define WHOLE(p) vld1q_s32(p)
#define REAL(p) vld1q_f32(p)
#define ALL(value) vdupq_n_f32(value)
#define TO_REAL(v) vcvtq_f32_s32(v)
#define TO_WHOLE(v) vcvtq_s32_f32(v)
#define PRODUCT(a, b) vmulq_f32(a, b)
#define PLUS(a, b) vaddq_f32(a, b)
#define MINUS(a, b) vsubq_f32(a, b)
#define WITH(v, value) vaddq_s32(v, vdupq_n_s32(value))
#define LARGER(a, b) vmaxnmq_f32(a, b)
#define POSITIVE(v) vmaxq_s32(v, vdupq_n_s32(0))
#define WITHIN(v, most) vminq_s32(vmaxq_s32(v, vdupq_n_s32(-(most))), vdupq_n_s32(most))
#define NO_SIZE vdupq_n_u32(0)
#define SIZE(v) vreinterpretq_u32_f32(v)
#define TWICE_SIZE(v) vshlq_n_u32(SIZE(v), 1)
#define FURTHER(v, by) vaddq_u32(v, vdupq_n_u32(by))
#define LARGER_SIZE(a, b) vmaxq_u32(a, b)
#define ALL_TRUE 0xffff
#define AND_BETWEEN(t, low, v, high) ((t)&vcmpgtq_m_f32(high, v, vcmpgtq_f32(v, low)))
#define HOLDS(t) ((t) == ALL_TRUE)
#define HALVED(v) vrshrq_n_s32(v, 1)
#define STORE(p, v) vst1q_s32(p, v)
#define STORE_REAL(p, v) vst1q_f32(p, v)
#define LARGEST(v) vmaxvq_u32(0, v)
#define store_bytes(p, v) vstrbq_s32((int8_t *)(p), v)

/* sum = 256 sum + bias. */
static unsigned shift_lanes(const float *bias, unsigned n, int32_t *restrict sum)
{
    size_t i;
    for (i = 0; i < n / 4 * 4; i += 4) {
        STORE(sum + i, vaddq_s32(vshlq_n_s32(WHOLE(sum + i), 8), TO_WHOLE(REAL(bias + i))));
    }
    return n / 4 * 4;
}
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>

typedef v128_t whole;
typedef v128_t sizes;
typedef v128_t real;
typedef v128_t truth;
#define WHOLE(p) wasm_v128_load(p)
#define REAL(p) wasm_v128_load(p)
#define ALL(value) wasm_f32x4_splat(value)
#define TO_REAL(v) wasm_f32x4_convert_i32x4(v)
#define TO_WHOLE(v) wasm_i32x4_trunc_sat_f32x4(v)
#define PRODUCT(a, b) wasm_f32x4_mul(a, b)
#define PLUS(a, b) wasm_f32x4_add(a, b)
#define MINUS(a, b) wasm_f32x4_sub(a, b)
#define WITH(v, value) wasm_i32x4_add(v, wasm_i32x4_splat(value))
#define LARGER(a, b) wasm_f32x4_max(a, b)
#define POSITIVE(v) wasm_i32x4_max(v, wasm_i32x4_const_splat(0))
#define WITHIN(v, most) \
    wasm_i32x4_min(wasm_i32x4_max(v, wasm_i32x4_splat(-(most))), wasm_i32x4_splat(most))
#define NO_SIZE wasm_i32x4_const_splat(0)
#define SIZE(v) v
#define TWICE_SIZE(v) wasm_i32x4_shl(v, 1)
#define FURTHER(v, by) wasm_i32x4_add(v, wasm_u32x4_splat(by))
#define LARGER_SIZE(a, b) wasm_u32x4_max(a, b)
#define ALL_TRUE wasm_i32x4_const_splat(-1)
#define AND_BETWEEN(t, low, v, high) \
    wasm_v128_and(t, wasm_v128_and(wasm_f32x4_lt(low, v), wasm_f32x4_lt(v, high)))
#define HOLDS(t) wasm_i32x4_all_true(t)
#define HALVED(v) wasm_i32x4_shr(wasm_i32x4_add(v, wasm_i32x4_const_splat(1)), 1)
#define STORE(p, v) wasm_v128_store(p, v)
#define STORE_REAL(p, v) wasm_v128_store(p, v)
static void store_bytes(uint8_t *p, whole v)
{
    const v128_t some = wasm_i16x8_narrow_i32x4(v, v);
    wasm_v128_store32_lane(p, wasm_u8x16_narrow_i16x8(some, some), 0);
}
static uint32_t LARGEST(sizes v)
{
    v = wasm_u32x4_max(v, wasm_i32x4_shuffle(v, v, 2, 3, 0, 1));
    v = wasm_u32x4_max(v, wasm_i32x4_shuffle(v, v, 1, 0, 3, 2));
    return wasm_u32x4_extract_lane(v, 0);
}
#else
#define begin_lanes(bias, per, n, sum) 0
#define shift_lanes(bias, n, sum) 0
#if defined(__SSE2__)
#include "int8_largest.h"
#else
#define largest_lanes(sum, factor, n, top) 0
#endif
#define byte_lanes(sum, factor, per, n, byte) 0
#define end_lanes(sum, factor, step, bias, n, raw) 0
#endif

#ifdef WHOLE
/* sum = bias per, without its fraction. */
static unsigned begin_lanes(const float *bias, float per, unsigned n, int32_t *restrict sum)
{
    size_t i;
    for (i = 0; i < n / 4 * 4; i += 4) {
        STORE(sum + i, TO_WHOLE(PRODUCT(REAL(bias + i), ALL(per))));
    }
    return n / 4 * 4;
}

/* top = the largest of sum factor, or top. */
static unsigned largest_lanes(const int32_t *restrict sum, const float *restrict factor, unsigned n,
                              float *top)
{
    real part = ALL(*top);
    word found;
    size_t i;
    for (i = 0; i < n / 4 * 4; i += 4) {
        part = LARGER(part, PRODUCT(TO_REAL(WHOLE(sum + i)), REAL(factor + i)));
    }
    found.bits = LARGEST(SIZE(part)); /* none is below zero */
    *top = found.value;
    return n / 4 * 4;
}

/* byte = (sum factor per + 1) / 2 of what is above zero. */
static unsigned byte_lanes(const int32_t *restrict sum, const float *restrict factor, float per,
                           unsigned n, uint8_t *restrict byte)
{
    size_t i;
    for (i = 0; i < n / 4 * 4; i += 4) {
        const real h = PRODUCT(TO_REAL(POSITIVE(WHOLE(sum + i))), REAL(factor + i));
        store_bytes(byte + i, HALVED(TO_WHOLE(PRODUCT(h, ALL(per)))));
    }
    return n / 4 * 4;
}

/* raw = sum (factor step) + bias. */
static unsigned end_lanes(const int32_t *restrict sum, const float *restrict factor, float step,
                          const float *bias, unsigned n, float *restrict raw)
{
    size_t i;
    for (i = 0; i < n / 4 * 4; i += 4) {
        const real unit = PRODUCT(REAL(factor + i), ALL(step));
        STORE_REAL(raw + i, PLUS(PRODUCT(TO_REAL(WHOLE(sum + i)), unit), REAL(bias + i)));
    }
    return n / 4 * 4;
}
#endif
#endif
