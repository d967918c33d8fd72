/* Lists of outputs above zero, several at a time. list_some returns how many it has seen; those
   that are left, fewer than it takes at a time, are listed one by one. Of several rows the lists
   are one: of outputs above zero in one of them, with 0 for the others. */

#if defined(__AVX512F__)
#define LISTS_SOME
static inline __mmask16 above_zero(__m512 h)
{
    return _mm512_cmp_ps_mask(h, _mm512_setzero_ps(), _CMP_GT_OQ);
}

static inline unsigned list_some(unsigned l, work *const *w, unsigned rows, unsigned *count)
{
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    unsigned i, r;
    for (i = 0; i + 16 <= layers[l].outputs; i += 16) {
        const __m512i at = _mm512_add_epi32(first, _mm512_set1_epi32((int)i));
        __mmask16 some = 0;
        __m256i found;
        for (r = 0; r < rows; ++r) {
            some |= above_zero(_mm512_loadu_ps(w[r]->raw + i));
        }
        found = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(some, at));
        for (r = 0; r < rows; ++r) {
            const __m512 h = _mm512_loadu_ps(w[r]->raw + i);
            __m512 kept = _mm512_maskz_compress_ps(some, _mm512_maskz_mov_ps(above_zero(h), h));
#if HALVES
            kept = _mm512_mul_ps(kept, _mm512_set1_ps(layers[l + 1].gain));
#endif
            _mm512_storeu_ps(w[r]->value + *count, kept);
            _mm256_storeu_si256((__m256i *)(void *)(w[r]->index + *count), found);
        }
        *count += (unsigned)_mm_popcnt_u32(some);
    }
    return i;
}
#elif defined(__AVX2__) && defined(__POPCNT__)
#define LISTS_SOME
/* The bytes of each of four floats, and which floats come first, by the bits of those above zero.
 */
#define P 0x03020100u
#define Q 0x07060504u
#define R 0x0b0a0908u
#define S 0x0f0e0d0cu
static const uint32_t first_ones[16][4] = {{P, P, P, P}, {P, P, P, P}, {Q, P, P, P}, {P, Q, P, P},
                                           {R, P, P, P}, {P, R, P, P}, {Q, R, P, P}, {P, Q, R, P},
                                           {S, P, P, P}, {P, S, P, P}, {Q, S, P, P}, {P, Q, S, P},
                                           {R, S, P, P}, {P, R, S, P}, {Q, R, S, P}, {P, Q, R, S}};
#undef P
#undef Q
#undef R
#undef S

static inline unsigned list_some(unsigned l, work *const *w, unsigned rows, unsigned *count)
{
    __m128i at = _mm_set_epi32(3, 2, 1, 0);
    unsigned i, r;
    for (i = 0; i + 4 <= layers[l].outputs; i += 4) {
        int some = 0;
        __m128i to, found;
        for (r = 0; r < rows; ++r) {
            const __m128 h = _mm_loadu_ps(w[r]->raw + i);
            some |= _mm_movemask_ps(_mm_cmpgt_ps(h, _mm_setzero_ps()));
        }
        to = _mm_loadu_si128((const __m128i *)(const void *)first_ones[some]);
        found = _mm_shuffle_epi8(at, to);
        found = _mm_packus_epi32(found, found);
        for (r = 0; r < rows; ++r) {
            const __m128 h = _mm_max_ps(_mm_loadu_ps(w[r]->raw + i), _mm_setzero_ps());
            __m128 kept = _mm_castsi128_ps(_mm_shuffle_epi8(_mm_castps_si128(h), to));
#if HALVES
            kept = _mm_mul_ps(kept, _mm_set1_ps(layers[l + 1].gain));
#endif
            _mm_storeu_ps(w[r]->value + *count, kept);
            _mm_storel_epi64((__m128i *)(void *)(w[r]->index + *count), found);
        }
        *count += (unsigned)_mm_popcnt_u32((unsigned)some);
        at = _mm_add_epi32(at, _mm_set1_epi32(4));
    }
    return i;
}
#endif
