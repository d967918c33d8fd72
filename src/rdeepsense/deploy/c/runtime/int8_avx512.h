/* add_lanes and add_first with AVX-512 VNNI: sixteen outputs of a group in one instruction. */

#define LANE 16

/* Lanes of their size, and products of bytes as gcc keeps them where they are. */
typedef uint32_t sixteen_sums __attribute__((vector_size(64)));
#define SIXTEEN(p) ((sixteen_sums)_mm512_loadu_si512(p))
#define ADDED(sum, x, w) (sixteen_sums) _mm512_dpbusd_epi32((__m512i)(sum), x, (__m512i)(w))

/* Where lanes are few, sums take turns: one alone would wait for itself. */
ALWAYS void add_lanes(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                      unsigned lanes, int32_t *restrict sum)
{
    const unsigned turns = 4 / lanes;
    sixteen_sums s[4];
    unsigned g, j, t;
    for (j = 0; j < 4; ++j) {
        s[j] = j < lanes ? SIXTEEN(sum + 16 * j) : (sixteen_sums)_mm512_setzero_si512();
    }
    for (g = 0; g + turns <= p->count; g += turns) {
        for (t = 0; t < turns; ++t) {
            const size_t at = p->group[g + t];
            const __m512i four = _mm512_set1_epi32((int)four_of(x + 4 * at));
            for (j = 0; j < lanes; ++j) {
                s[t * lanes + j] = ADDED(s[t * lanes + j], four, SIXTEEN(w + 4 * n * at + 64 * j));
            }
        }
    }
    for (; g < p->count; ++g) {
        const size_t at = p->group[g];
        const __m512i four = _mm512_set1_epi32((int)four_of(x + 4 * at));
        for (j = 0; j < lanes; ++j) {
            s[j] = ADDED(s[j], four, SIXTEEN(w + 4 * n * at + 64 * j));
        }
    }
    for (j = 0; j < lanes; ++j) {
        for (t = 1; t < turns; ++t) {
            s[j] += s[t * lanes + j];
        }
        _mm512_storeu_si512(sum + 16 * j, (__m512i)s[j]);
    }
}

/* A load that gcc does not repeat for each product: one in a cycle is all there is. */
#if defined(__GNUC__)
#define READ_ONCE(v) __asm__("" : "+v"(v))
#else
#define READ_ONCE(v)
#endif

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
#define PAIRS /* rows of one list, whose weights are read once for both */

/* Which of sixteen groups are not zero. */
ALWAYS unsigned some_of_sixteen(const uint8_t *x)
{
    const __m512i fours = _mm512_loadu_si512(x);
    return _mm512_test_epi32_mask(fours, fours);
}

/* Lists the groups that are not zero in one of two rows. */
static picked pick_both(const uint8_t *x, size_t apart, unsigned groups, uint16_t *room)
{
    picked p = {room, 0, 0, 0};
    unsigned g;
    for (g = pick_sixteen(x, 2, apart, groups, room, &p.count); g < groups; ++g) {
        room[p.count] = (uint16_t)g;
        p.count += (four_of(x + 4 * g) | four_of(x + apart + 4 * g)) != 0;
    }
    return p;
}

/* sum += W x for one block of 33 to 64 outputs of two rows, x and sum `apart` bytes from each
   other. */
static void add_both(const int8_t *w, const uint8_t *x, size_t apart, const picked *p, unsigned n,
                     int32_t *sum)
{
    int32_t *const other = (int32_t *)(void *)((char *)sum + apart);
    sixteen_sums s[4], t[4];
    unsigned g, j;
    for (j = 0; j < 4; ++j) {
        s[j] = SIXTEEN(sum + 16 * j);
        t[j] = SIXTEEN(other + 16 * j);
    }
    for (g = 0; g < p->count; ++g) {
        const size_t at = p->group[g];
        const __m512i four = _mm512_set1_epi32((int)four_of(x + 4 * at));
        const __m512i more = _mm512_set1_epi32((int)four_of(x + apart + 4 * at));
        for (j = 0; j < 4; ++j) {
            sixteen_sums v = SIXTEEN(w + 4 * n * at + 64 * j);
            READ_ONCE(v);
            s[j] = ADDED(s[j], four, v);
            t[j] = ADDED(t[j], more, v);
        }
    }
    for (j = 0; j < 4; ++j) {
        _mm512_storeu_si512(sum + 16 * j, (__m512i)s[j]);
        _mm512_storeu_si512(other + 16 * j, (__m512i)t[j]);
    }
}
#endif

/* sum += W x of a layer with n outputs, 1, 2, 4 or 8: a register holds the weights of 16 / n
   groups, and none is left out. */
#define FEW(n) ((n) <= 8 && ((n) & ((n)-1)) == 0)
static void add_few(const int8_t *w, const uint8_t *x, unsigned groups, unsigned n,
                    int32_t *restrict sum)
{
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i group = _mm512_srlv_epi32(lanes, _mm512_set1_epi32((n > 1) + (n > 2) + (n > 4)));
    const unsigned at_once = 16 / n;
    sixteen_sums s = (sixteen_sums)_mm512_setzero_si512();
    uint32_t each[16];
    unsigned g, k;
    for (g = 0; g < groups; g += at_once, w += 64) {
        const unsigned some = groups - g < at_once ? groups - g : at_once;
        const __m512i fours = _mm512_maskz_loadu_epi32((__mmask16)((1u << some) - 1), x + 4 * g);
        s = ADDED(s, _mm512_permutexvar_epi32(group, fours), SIXTEEN(w));
    }
    _mm512_storeu_si512(each, (__m512i)s);
    for (k = 0; k < 16; ++k) {
        sum[k % n] += (int32_t)each[k];
    }
}

#if INT8
static void add_first(const int8_t *w, const uint8_t *high, const uint8_t *low, unsigned groups,
                      unsigned n, int32_t *restrict sum)
{
    sixteen_sums s[4], above[4];
    unsigned g, j;
    for (j = 0; j < 4; ++j) {
        s[j] = SIXTEEN(sum + 16 * j);
        above[j] = (sixteen_sums)_mm512_setzero_si512();
    }
    for (g = 0; g < groups; ++g, w += 4 * n) {
        const __m512i four = _mm512_set1_epi32((int)four_of(low + 4 * g));
        const __m512i higher = _mm512_set1_epi32((int)four_of(high + 4 * g));
        for (j = 0; j < 4; ++j) {
            sixteen_sums v = SIXTEEN(w + 64 * j);
            READ_ONCE(v);
            s[j] = ADDED(s[j], four, v);
            above[j] = ADDED(above[j], higher, v);
        }
    }
    for (j = 0; j < 4; ++j) {
        _mm512_storeu_si512(sum + 16 * j, (__m512i)(s[j] + (above[j] << 8)));
    }
}
#endif
