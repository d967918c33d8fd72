/* The first layer's inputs, four at a time: what put and in_reach do with one, without a branch.
   What is no number converts to 0 here, too, and what is infinite to the end of the range. */

/* The two bytes of each number of v / 2. */
#if defined(__ARM_NEON)
static void store_halves(uint8_t *high, uint8_t *low, whole v)
{
    const uint16x4_t some = vshrn_n_u32(vreinterpretq_u32_s32(v), 1);
    const uint16x8_t both = vcombine_u16(some, vdup_n_u16(0));
    store_four(high, vshrn_n_u16(both, 8));
    store_four(low, vmovn_u16(both));
}
#elif defined(__ARM_FEATURE_MVE)
static void store_halves(uint8_t *high, uint8_t *low, whole v)
{
    store_bytes(high, vshrq_n_s32(v, 9));
    store_bytes(low, vshrq_n_s32(v, 1));
}
#else
static void store_halves(uint8_t *high, uint8_t *low, whole v)
{
    store_bytes(high, wasm_u32x4_shr(v, 9));
    store_bytes(low, wasm_v128_and(wasm_u32x4_shr(v, 1), wasm_i32x4_const_splat(255)));
}
#endif

#if REFUSES_NAN
#define ORDERED(z) TWICE_SIZE(z) /* NaN last: where there is one, nothing else counts */
#else
#define NAN_FIRST 0x00ffffffu /* what is above infinity, twice its size, wraps */
#define ORDERED(z) FURTHER(TWICE_SIZE(z), NAN_FIRST)
#endif

/* Returns how many inputs it read; flags those beyond the range of bytes, and says what
   input_status does. */
static unsigned read_lanes(const float *x, unsigned n, work *w, uint32_t *flags, int *status)
{
    const uint32_t limit = 2 * size_of(LIMIT);
    const unsigned done = n / 4 * 4;
    sizes most = NO_SIZE;
#if GUARD && !ENCODED
    truth inside = ALL_TRUE;
#endif
    uint32_t size;
    size_t i;
    for (i = 0; i < done; i += 4) {
        const real some = REAL(x + i), centred = MINUS(some, REAL(model_centre + i));
        const real z = PRODUCT(centred, REAL(model_per_step + i));
        const whole halves = WITHIN(TO_WHOLE(z), (int32_t)LIMIT);
        most = LARGER_SIZE(most, ORDERED(z));
        store_halves(w->byte + i, w->room.low + i, WITH(halves, ZERO));
#if GUARD && !ENCODED
        inside = AND_BETWEEN(inside, REAL(model_low + i), some, REAL(model_high + i));
#endif
    }
    size = LARGEST(most);
#if REFUSES_NAN
    *flags |= (size > 2 * INFINITE) * MODEL_MISSING | (size > limit) * MODEL_OUT_OF_RANGE;
#else
    *flags |= (size > limit + NAN_FIRST) * MODEL_OUT_OF_RANGE;
#endif
#if GUARD && !ENCODED
    /* Registers that take the smallest numbers for zero never say that a number is between others
       which is not, and of NaN they do not: plain C decides what they leave open, and reads such
       a row anew. */
    for (i = 0; !HOLDS(inside) && i < done; ++i) {
        const float moved = known_input(x, (unsigned)i, status);
        put(w, (unsigned)i, in_reach((moved - model_centre[i]) * model_per_step[i], flags));
    }
#else
    (void)status;
#endif
    return done;
}
