/* add_some and add_first with what every x86 of 64 bits has: products of pairs of 16 bits.

   Of the four weights of an output, shifts make the second and the fourth numbers of 16 bits, and
   the first and the third 256 times such, whose sums fit 32 bits for so many groups: 2 255 127 256
   MOST_GROUPS < 2^31. So nothing is unpacked, and every lane is one output. */

#define MOST_GROUPS 128

/* To four sums what the lanes hold, 2^shift times. */
ALWAYS void end_four(four_sums even, four_sums odd, int shift, int32_t *sum)
{
    __m128i *to = (__m128i *)(void *)sum;
    const __m128i found = _mm_add_epi32(_mm_srai_epi32((__m128i)even, 8), (__m128i)odd);
    _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), _mm_slli_epi32(found, shift)));
}

/* Of the count groups that group names, if they are listed, else of the first count ones. */
ALWAYS void add_wide(const int8_t *w, const uint8_t *x, int listed, const uint16_t *group,
                     unsigned count, unsigned n, int shift, int32_t *restrict sum)
{
    const size_t apart = 4 * n;
    unsigned g, j, k;
    for (j = 0; j < n; j += 16) {
        const int8_t *from = w + 4 * j;
        four_sums even[4], odd[4];
        for (k = 0; k < 4; ++k) {
            even[k] = odd[k] = (four_sums)_mm_setzero_si128();
        }
        for (g = 0; g < count; ++g) {
            const size_t at = listed ? group[g] : g;
            const int8_t *p = from + at * apart;
            const __m128i four = _mm_set1_epi32((int)four_of(x + 4 * at));
            const __m128i second = _mm_srli_epi16(four, 8);
            const __m128i first = _mm_and_si128(four, _mm_set1_epi16(255));
            for (k = 0; k < 4; ++k) {
                const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * k));
                even[k] += (four_sums)_mm_madd_epi16(_mm_slli_epi16(v, 8), first);
                odd[k] += (four_sums)_mm_madd_epi16(_mm_srai_epi16(v, 8), second);
            }
        }
        for (k = 0; k < 4; ++k) {
            end_four(even[k], odd[k], shift, sum + j + 4 * k);
        }
    }
}

OUT_OF_LINE void add_some(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                          int32_t *restrict sum)
{
    unsigned begin;
    for (begin = 0; begin < p->count; begin += MOST_GROUPS) {
        const unsigned left = p->count - begin;
        add_wide(w, x, 1, p->group + begin, left < MOST_GROUPS ? left : MOST_GROUPS, n, 0, sum);
    }
}

#if INT8
OUT_OF_LINE void add_first(const int8_t *w, const uint8_t *high, const uint8_t *low,
                           unsigned groups, unsigned n, int32_t *restrict sum)
{
    const unsigned most = groups < MOST_GROUPS ? groups : MOST_GROUPS;
    add_wide(w, high, 0, 0, most, n, 8, sum);
    add_wide(w, low, 0, 0, most, n, 0, sum);
    if (groups > most) {
        add_first(w + 4 * n * most, high + 4 * most, low + 4 * most, groups - most, n, sum);
    }
}
#endif
