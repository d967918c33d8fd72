/* add_some with AVX2: bytes widened, then pairs of products. */

static void add_some(const int8_t *w, const uint8_t *x, const uint16_t *group, unsigned count,
                     unsigned n, int32_t *restrict sum)
{
    unsigned g, j, k;
    for (j = 0; j < n; j += 16) {
        __m256i s[4];
        for (k = 0; k < 4; ++k) {
            s[k] = _mm256_setzero_si256();
        }
        for (g = 0; g < count; ++g) {
            const unsigned at = group == 0 ? g : group[g];
            const int8_t *p = w + 4 * (n * at + j);
            const __m128i bytes = _mm_cvtsi32_si128((int)four_of(x + 4 * at));
            const __m256i four = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(bytes));
            for (k = 0; k < 4; ++k) {
                const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * k));
                s[k] = _mm256_add_epi32(s[k], _mm256_madd_epi16(_mm256_cvtepi8_epi16(v), four));
            }
        }
        for (k = 0; k < 2; ++k) {
            __m256i *to = (__m256i *)(void *)(sum + j + 8 * k);
            const __m256i pairs = _mm256_hadd_epi32(s[2 * k], s[2 * k + 1]);
            const __m256i found = _mm256_permute4x64_epi64(pairs, 0xd8);
            _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), found));
        }
    }
}
