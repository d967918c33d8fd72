/* add_some and add_first with AVX2.

   maddubs adds two products of a byte and a weight in 16 bits, which hold (x0 + x1) 127 as long as
   x0 + x1 <= 258: most neighbours are not both large. Those of the others are added half by half.
   The first layer's numbers are twice one of 15 bits, which meets widened weights, and one of one
   bit, whose products fit 16 bits for a hundred groups. */

#define LARGE(four) \
    ((((four)&0x00ff00ffu) + ((four) >> 8 & 0x00ff00ffu) + 0x7efd7efdu) & 0x80008000u)

static inline __m256i added(__m256i sum, __m256i x, __m256i w)
{
    const __m256i pairs = _mm256_maddubs_epi16(x, w);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* Of 8 lanes outputs. */
ALWAYS void add_lanes(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                      unsigned lanes, int32_t *restrict sum)
{
    __m256i s[8];
    unsigned g, j;
    for (j = 0; j < lanes; ++j) {
        s[j] = _mm256_loadu_si256((const __m256i *)(const void *)(sum + 8 * j));
    }
    for (g = 0; g < p->count; ++g) {
        const unsigned at = p->group[g];
        const __m256i four = _mm256_set1_epi32((int)four_of(x + 4 * at));
        for (j = 0; j < lanes; ++j) {
            s[j] = added(s[j], four, EIGHT_FOURS(w + 4 * n * at + 32 * j));
        }
    }
    for (g = 0; g < p->larges; ++g) {
        const unsigned at = p->large[g];
        const uint32_t four = four_of(x + 4 * at), half = four >> 1 & 0x7f7f7f7fu;
        const __m256i some = _mm256_set1_epi32((int)half),
                      rest = _mm256_set1_epi32((int)(four - half));
        for (j = 0; j < lanes; ++j) {
            const __m256i v = EIGHT_FOURS(w + 4 * n * at + 32 * j);
            s[j] = added(added(s[j], some, v), rest, v);
        }
    }
    for (j = 0; j < lanes; ++j) {
        _mm256_storeu_si256((__m256i *)(void *)(sum + 8 * j), s[j]);
    }
}

static void add_some(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                     int32_t *restrict sum)
{
    if (n > 32) {
        add_lanes(w, x, p, n, 8, sum);
    } else if (n > 8) {
        add_lanes(w, x, p, n, 4, sum);
    } else {
        add_lanes(w, x, p, n, 1, sum);
    }
}

#if INT8
/* Eight sums of the pairs in two registers of them. */
static inline __m256i paired(__m256i a, __m256i b)
{
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8);
}

static void add_first(const int8_t *w, const uint8_t *high, const uint8_t *low, unsigned groups,
                      unsigned n, int32_t *restrict sum)
{
    const unsigned most = groups < 128 ? groups : 128;
    unsigned g, j, k;
    for (j = 0; j < n; j += 32) {
        __m256i s[8], rest[4];
        for (k = 0; k < 8; ++k) {
            s[k] = rest[k / 2] = _mm256_setzero_si256();
        }
        for (g = 0; g < most; ++g) {
            const int8_t *p = w + 4 * (n * g + j);
            const uint32_t bytes = four_of(low + 4 * g);
            const __m128i above = _mm_cvtsi32_si128((int)four_of(high + 4 * g));
            const __m128i whole = _mm_unpacklo_epi8(_mm_cvtsi32_si128((int)bytes), above);
            const __m256i half = _mm256_broadcastq_epi64(_mm_srli_epi16(whole, 1));
            const __m256i last = _mm256_set1_epi32((int)(bytes & 0x01010101u));
            for (k = 0; k < 8; ++k) {
                const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * k));
                s[k] = _mm256_add_epi32(s[k], _mm256_madd_epi16(_mm256_cvtepi8_epi16(v), half));
            }
            for (k = 0; k < 4; ++k) {
                const __m256i pairs = _mm256_maddubs_epi16(last, EIGHT_FOURS(p + 32 * k));
                rest[k] = _mm256_add_epi16(rest[k], pairs);
            }
        }
        for (k = 0; k < 4; ++k) {
            __m256i *to = (__m256i *)(void *)(sum + j + 8 * k);
            const __m256i twice = _mm256_slli_epi32(paired(s[2 * k], s[2 * k + 1]), 1);
            const __m256i once = _mm256_madd_epi16(rest[k], _mm256_set1_epi16(1));
            const __m256i found = _mm256_add_epi32(twice, once);
            _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), found));
        }
    }
    if (groups > most) {
        add_first(w + 4 * n * most, high + 4 * most, low + 4 * most, groups - most, n, sum);
    }
}
#endif
