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

/* Lists sixteen groups at a time, those that are not zero in one of some rows, which are `apart`
   bytes from each other. Returns how many groups it has seen. */
ALWAYS unsigned pick_sixteen(const uint8_t *x, unsigned rows, size_t apart, unsigned groups,
                             uint16_t *room, unsigned *count)
{
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    unsigned g, r;
    for (g = 0; g + 16 <= groups; g += 16) {
        __m512i fours = _mm512_loadu_si512(x + 4 * g);
        __mmask16 some;
        __m512i found;
        for (r = 1; r < rows; ++r) {
            fours = _mm512_or_si512(fours, _mm512_loadu_si512(x + r * apart + 4 * g));
        }
        some = _mm512_test_epi32_mask(fours, fours);
        found = _mm512_add_epi32(first, _mm512_set1_epi32((int)g));
        found = _mm512_maskz_compress_epi32(some, found);
        _mm256_storeu_si256((__m256i *)(void *)(room + *count), _mm512_cvtepi32_epi16(found));
        *count += (unsigned)_mm_popcnt_u32(some);
    }
    return g;
}
#define PICK(x, groups, room, count, end) pick_sixteen(x, 1, 0, groups, room, count)

#if INT8 && MANY
/* Four rows of listed groups, whose weights are read once for all of them. */
#define FOUR_ROWS 4

/* Lists the groups that are not zero in one of four rows. */
static unsigned pick_together(const uint8_t *x, size_t apart, unsigned groups, uint16_t *room)
{
    unsigned count = 0, g, r;
    for (g = pick_sixteen(x, FOUR_ROWS, apart, groups, room, &count); g < groups; ++g) {
        uint32_t some = 0;
        for (r = 0; r < FOUR_ROWS; ++r) {
            some |= four_of(x + r * apart + 4 * g);
        }
        room[count] = (uint16_t)g;
        count += some != 0;
    }
    return count;
}

/* sum += W x for one block of n outputs of four rows, x and sum `apart` bytes from each other. */
static void add_together(const int8_t *w, const uint8_t *x, size_t apart, const uint16_t *group,
                         unsigned count, unsigned n, int32_t *sum)
{
    __m512i s[FOUR_ROWS][4];
    unsigned g, j, r;
    for (r = 0; r < FOUR_ROWS; ++r) {
        for (j = 0; j < 4; ++j) {
            s[r][j] = _mm512_loadu_si512((const char *)(sum + 16 * j) + r * apart);
        }
    }
    for (g = 0; g < count; ++g) {
        const uint8_t *at = x + 4 * group[g];
        const int8_t *from = w + 4 * (size_t)n * group[g];
        __m512i four[FOUR_ROWS];
        for (r = 0; r < FOUR_ROWS; ++r) {
            four[r] = _mm512_set1_epi32((int)four_of(at + r * apart));
        }
        for (j = 0; j < 4; ++j) {
            const __m512i v = _mm512_loadu_si512(from + 64 * j);
            for (r = 0; r < FOUR_ROWS; ++r) {
                s[r][j] = _mm512_dpbusd_epi32(s[r][j], four[r], v);
            }
        }
    }
    for (r = 0; r < FOUR_ROWS; ++r) {
        for (j = 0; j < 4; ++j) {
            _mm512_storeu_si512((char *)(sum + 16 * j) + r * apart, s[r][j]);
        }
    }
}
#endif

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
