/* add_some and add_first with what every x86 of 64 bits has: bytes widened, pairs of products. */

/* Four bytes widened, twice. */
static inline __m128i widened(uint32_t four)
{
    const __m128i wide = _mm_unpacklo_epi8(_mm_cvtsi32_si128((int)four), _mm_setzero_si128());
    return _mm_unpacklo_epi64(wide, wide);
}

/* To eight sums the pairs of four registers, 2^shift times. */
static inline void end_eight(const __m128i *s, int shift, int32_t *sum)
{
    unsigned k;
    for (k = 0; k < 2; ++k) {
        __m128i *to = (__m128i *)(void *)(sum + 4 * k);
        const __m128 a = _mm_castsi128_ps(s[2 * k]), b = _mm_castsi128_ps(s[2 * k + 1]);
        const __m128i even = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
        const __m128i odd = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
        const __m128i found = _mm_slli_epi32(_mm_add_epi32(even, odd), shift);
        _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), found));
    }
}

/* Of the count groups that group names, or without it the first count ones. */
ALWAYS void add_wide(const int8_t *w, const uint8_t *x, const uint16_t *group, unsigned count,
                     unsigned n, int shift, int32_t *restrict sum)
{
    unsigned g, j, k;
    for (j = 0; j < n; j += 16) {
        __m128i s[8];
        for (k = 0; k < 8; ++k) {
            s[k] = _mm_setzero_si128();
        }
        for (g = 0; g < count; ++g) {
            const unsigned at = group == 0 ? g : group[g];
            const int8_t *p = w + 4 * (n * at + j);
            const __m128i four = widened(four_of(x + 4 * at));
            for (k = 0; k < 4; ++k) {
                const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * k));
                const __m128i some = _mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8);
                const __m128i rest = _mm_srai_epi16(_mm_unpackhi_epi8(v, v), 8);
                s[2 * k] = _mm_add_epi32(s[2 * k], _mm_madd_epi16(some, four));
                s[2 * k + 1] = _mm_add_epi32(s[2 * k + 1], _mm_madd_epi16(rest, four));
            }
        }
        end_eight(s, shift, sum + j);
        end_eight(s + 4, shift, sum + j + 8);
    }
}

static void add_some(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                     int32_t *restrict sum)
{
    add_wide(w, x, p->group, p->count, n, 0, sum);
}

#if INT8
static void add_first(const int8_t *w, const uint8_t *high, const uint8_t *low, unsigned groups,
                      unsigned n, int32_t *restrict sum)
{
    add_wide(w, high, 0, groups, n, 8, sum);
    add_wide(w, low, 0, groups, n, 0, sum);
}
#endif
