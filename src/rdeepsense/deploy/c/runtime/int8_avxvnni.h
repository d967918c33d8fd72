/* add_lanes and add_first with AVX-VNNI: eight outputs of a group in one instruction. */

#if defined(__AVXVNNI__)
#define ADDED(sum, x, w) (eight_sums) _mm256_dpbusd_avx_epi32((__m256i)(sum), x, w)
#else
#define ADDED(sum, x, w) (eight_sums) _mm256_dpbusd_epi32((__m256i)(sum), x, w)
#endif

#define LANE 8

ALWAYS void add_lanes(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                      unsigned lanes, int32_t *restrict sum)
{
    eight_sums s[8];
    unsigned g, j;
    for (j = 0; j < lanes; ++j) {
        s[j] = (eight_sums)_mm256_loadu_si256((const __m256i *)(const void *)(sum + 8 * j));
    }
    for (g = 0; g < p->count; ++g) {
        const unsigned at = p->group[g];
        const __m256i four = _mm256_set1_epi32((int)four_of(x + 4 * at));
        for (j = 0; j < lanes; ++j) {
            s[j] = ADDED(s[j], four, EIGHT_FOURS(w + 4 * n * at + 32 * j));
        }
    }
    for (j = 0; j < lanes; ++j) {
        _mm256_storeu_si256((__m256i *)(void *)(sum + 8 * j), (__m256i)s[j]);
    }
}

#if INT8
static void add_first(const int8_t *w, const uint8_t *high, const uint8_t *low, unsigned groups,
                      unsigned n, int32_t *restrict sum)
{
    unsigned g, j, k;
    for (j = 0; j < n; j += 32) {
        eight_sums s[4], above[4];
        for (k = 0; k < 4; ++k) {
            s[k] = above[k] = (eight_sums)_mm256_setzero_si256();
        }
        for (g = 0; g < groups; ++g) {
            const __m256i four = _mm256_set1_epi32((int)four_of(low + 4 * g));
            const __m256i higher = _mm256_set1_epi32((int)four_of(high + 4 * g));
            for (k = 0; k < 4; ++k) {
                const __m256i v = EIGHT_FOURS(w + 4 * (n * g + j) + 32 * k);
                s[k] = ADDED(s[k], four, v);
                above[k] = ADDED(above[k], higher, v);
            }
        }
        for (k = 0; k < 4; ++k) {
            __m256i *to = (__m256i *)(void *)(sum + j + 8 * k);
            const __m256i found = (__m256i)(s[k] + (above[k] << 8));
            _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), found));
        }
    }
}
#endif
