/* add_some with what every x86 of 64 bits has. */

static void add_some(const int8_t *w, const uint8_t *x, const uint16_t *group, unsigned count,
                     unsigned n, int32_t *restrict sum)
{
    unsigned g, j, k;
    for (j = 0; j < n; j += 8) {
        __m128i s[4];
        for (k = 0; k < 4; ++k) {
            s[k] = _mm_setzero_si128();
        }
        for (g = 0; g < count; ++g) {
            const unsigned at = group == 0 ? g : group[g];
            const int8_t *p = w + 4 * (n * at + j);
            const __m128i bytes = _mm_cvtsi32_si128((int)four_of(x + 4 * at));
            const __m128i wide = _mm_unpacklo_epi8(bytes, _mm_setzero_si128());
            const __m128i four = _mm_unpacklo_epi64(wide, wide);
            for (k = 0; k < 2; ++k) {
                const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * k));
                const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8);
                const __m128i high = _mm_srai_epi16(_mm_unpackhi_epi8(v, v), 8);
                s[2 * k] = _mm_add_epi32(s[2 * k], _mm_madd_epi16(low, four));
                s[2 * k + 1] = _mm_add_epi32(s[2 * k + 1], _mm_madd_epi16(high, four));
            }
        }
        for (k = 0; k < 2; ++k) {
            __m128i *to = (__m128i *)(void *)(sum + j + 4 * k);
            const __m128 a = _mm_castsi128_ps(s[2 * k]), b = _mm_castsi128_ps(s[2 * k + 1]);
            const __m128i even = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
            const __m128i odd = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
            _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), _mm_add_epi32(even, odd)));
        }
    }
}
