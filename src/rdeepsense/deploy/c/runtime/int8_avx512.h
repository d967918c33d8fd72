/* add_lanes and add_first with AVX-512 VNNI: sixteen outputs of a group in one instruction. */

#define LANE 16

ALWAYS void add_lanes(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                      unsigned lanes, int32_t *restrict sum)
{
    __m512i s[4];
    unsigned g, j;
    for (j = 0; j < lanes; ++j) {
        s[j] = _mm512_loadu_si512(sum + 16 * j);
    }
    for (g = 0; g < p->count; ++g) {
        const unsigned at = p->group[g];
        const __m512i four = _mm512_set1_epi32((int)four_of(x + 4 * at));
        for (j = 0; j < lanes; ++j) {
            const __m512i v = _mm512_loadu_si512(w + 4 * n * at + 64 * j);
            s[j] = _mm512_dpbusd_epi32(s[j], four, v);
        }
    }
    for (j = 0; j < lanes; ++j) {
        _mm512_storeu_si512(sum + 16 * j, s[j]);
    }
}

/* Lists sixteen groups at a time; returns how many groups it has seen. */
#define PICK(x, groups, room, count, end) pick_sixteen(x, groups, room, count)
static unsigned pick_sixteen(const uint8_t *x, unsigned groups, uint16_t *room, unsigned *count)
{
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    unsigned g;
    for (g = 0; g + 16 <= groups; g += 16) {
        const __m512i fours = _mm512_loadu_si512(x + 4 * g);
        const __mmask16 some = _mm512_test_epi32_mask(fours, fours);
        const __m512i at = _mm512_add_epi32(first, _mm512_set1_epi32((int)g));
        const __m512i found = _mm512_maskz_compress_epi32(some, at);
        _mm256_storeu_si256((__m256i *)(void *)(room + *count), _mm512_cvtepi32_epi16(found));
        *count += (unsigned)_mm_popcnt_u32(some);
    }
    return g;
}

#if INT8
static void add_first(const int8_t *w, const uint8_t *high, const uint8_t *low, unsigned groups,
                      unsigned n, int32_t *restrict sum)
{
    __m512i s[4], above[4];
    unsigned g, j;
    for (j = 0; j < 4; ++j) {
        s[j] = _mm512_loadu_si512(sum + 16 * j);
        above[j] = _mm512_setzero_si512();
    }
    for (g = 0; g < groups; ++g, w += 4 * n) {
        const __m512i four = _mm512_set1_epi32((int)four_of(low + 4 * g));
        const __m512i higher = _mm512_set1_epi32((int)four_of(high + 4 * g));
        for (j = 0; j < 4; ++j) {
            const __m512i v = _mm512_loadu_si512(w + 64 * j);
            s[j] = _mm512_dpbusd_epi32(s[j], four, v);
            above[j] = _mm512_dpbusd_epi32(above[j], higher, v);
        }
    }
    for (j = 0; j < 4; ++j) {
        const __m512i shifted = _mm512_slli_epi32(above[j], 8);
        _mm512_storeu_si512(sum + 16 * j, _mm512_add_epi32(s[j], shifted));
    }
}
#endif
