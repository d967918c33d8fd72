/* add_lanes and add_first with AVX2.

   maddubs adds two products of a byte and a weight in 16 bits, which hold (x0 + x1) 127 as long as
   x0 + x1 <= 258: most neighbours are not both large. Bytes of the others are 4 high + low:
   products of high fit for two groups, 4 63 127 <= 32767, those of low for 43. The first layer's
   numbers are twice one of 15 bits, which meets widened weights, and one of one bit. */

#define LARGE(four) \
    ((((four)&0x00ff00ffu) + ((four) >> 8 & 0x00ff00ffu) + 0x7efd7efdu) & 0x80008000u)

/* Lists four groups at a time, the large ones from the right: returns how many groups it has seen.
   What it writes beside them needs places for eight. */
#define PICK pick_fours
static unsigned pick_fours(const uint8_t *x, unsigned groups, uint16_t *room, unsigned *count,
                           unsigned *end)
{
    /* By four bits: where they are set, then where they are not. */
    static const uint16_t places[16][4] = {{0, 1, 2, 3}, {0, 1, 2, 3}, {1, 0, 2, 3}, {0, 1, 2, 3},
                                           {2, 0, 1, 3}, {0, 2, 1, 3}, {1, 2, 0, 3}, {0, 1, 2, 3},
                                           {3, 0, 1, 2}, {0, 3, 1, 2}, {1, 3, 0, 2}, {0, 1, 3, 2},
                                           {2, 3, 0, 1}, {0, 2, 3, 1}, {1, 2, 3, 0}, {0, 1, 2, 3}};
    const __m128i zero = _mm_setzero_si128(), most = _mm_set1_epi16(258);
    unsigned g;
    for (g = 0; g + 8 <= groups; g += 4) {
        const __m128i fours = _mm_loadu_si128((const __m128i *)(const void *)(x + 4 * g));
        const __m128i over = _mm_cmpgt_epi16(_mm_maddubs_epi16(fours, _mm_set1_epi8(1)), most);
        const __m128i none = _mm_cmpeq_epi32(fours, zero), fit = _mm_cmpeq_epi32(over, zero);
        const unsigned fits = (unsigned)_mm_movemask_ps(_mm_castsi128_ps(fit));
        const unsigned some = fits & ~(unsigned)_mm_movemask_ps(_mm_castsi128_ps(none));
        const __m128i *left = (const __m128i *)(const void *)places[some];
        const __m128i *right = (const __m128i *)(const void *)places[fits];
        const __m128i first = _mm_set1_epi16((int16_t)g);
        _mm_storel_epi64((__m128i *)(void *)(room + *count),
                         _mm_add_epi16(_mm_loadl_epi64(left), first));
        _mm_storel_epi64((__m128i *)(void *)(room + *end - 4),
                         _mm_add_epi16(_mm_loadl_epi64(right), first));
        *count += (unsigned)_mm_popcnt_u32(some);
        *end -= 4 - (unsigned)_mm_popcnt_u32(fits);
    }
    return g;
}

typedef uint16_t sixteen_sums __attribute__((vector_size(32)));

static inline __m256i broadcast(const uint8_t *x)
{
    return _mm256_set1_epi32((int)four_of(x));
}

static inline eight_sums sums_at(const int32_t *sum)
{
    return (eight_sums)EIGHT_FOURS(sum);
}

/* Eight sums of pairs of 16 bits, times what is the same everywhere. */
static inline eight_sums paired(sixteen_sums pairs, int times)
{
    return (eight_sums)_mm256_madd_epi16((__m256i)pairs, _mm256_set1_epi16((int16_t)times));
}

static inline sixteen_sums products(__m256i x, const int8_t *w)
{
    return (sixteen_sums)_mm256_maddubs_epi16(x, EIGHT_FOURS(w));
}

/* Adds the groups that fit to 8 lanes outputs; as groups are left out, only their list says which
   weights come next. */
ALWAYS void add_small(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                      unsigned lanes, int32_t *restrict sum)
{
    const uint16_t *at = p->group, *const end = at + p->count;
    eight_sums s[8];
    unsigned j;
    for (j = 0; j < lanes; ++j) {
        s[j] = sums_at(sum + 8 * j);
    }
    for (; at < end; ++at) {
        const int8_t *const v = w + 4 * (size_t)n * *at;
        const int8_t *const ahead = end - at > 3 ? w + 4 * (size_t)n * at[3] : v;
        const __m256i four = broadcast(x + 4 * *at);
        for (j = 0; j < lanes; j += 2) {
            _mm_prefetch((const char *)ahead + 32 * j, _MM_HINT_T0);
        }
        for (j = 0; j < lanes; ++j) {
            s[j] += paired(products(four, v + 32 * j), 1);
        }
    }
    for (j = 0; j < lanes; ++j) {
        _mm256_storeu_si256((__m256i *)(void *)(sum + 8 * j), (__m256i)s[j]);
    }
}

/* Adds at most 42 large groups to 8 lanes outputs, at most 32. */
ALWAYS void add_large(const int8_t *w, const uint8_t *x, const uint16_t *at, const uint16_t *end,
                      unsigned n, unsigned lanes, int32_t *restrict sum)
{
    const __m256i three = _mm256_set1_epi8(3);
    eight_sums s[4];
    sixteen_sums rest[4];
    unsigned j;
    for (j = 0; j < lanes; ++j) {
        s[j] = sums_at(sum + 8 * j);
        rest[j] = (sixteen_sums)_mm256_setzero_si256();
    }
    for (; at < end; at += 2) {
        const unsigned other = at + 1 < end ? at[1] : *at;
        const int8_t *const v = w + 4 * (size_t)n * *at, *const u = w + 4 * (size_t)n * other;
        const __m256i a = broadcast(x + 4 * *at);
        const __m256i b = at + 1 < end ? broadcast(x + 4 * other) : _mm256_setzero_si256();
        const __m256i low_a = _mm256_and_si256(a, three), low_b = _mm256_and_si256(b, three);
        const __m256i high_a = _mm256_srli_epi16(_mm256_sub_epi8(a, low_a), 2);
        const __m256i high_b = _mm256_srli_epi16(_mm256_sub_epi8(b, low_b), 2);
        for (j = 0; j < lanes; ++j) {
            s[j] += paired(products(high_a, v + 32 * j) + products(high_b, u + 32 * j), 4);
            rest[j] += products(low_a, v + 32 * j) + products(low_b, u + 32 * j);
        }
    }
    for (j = 0; j < lanes; ++j) {
        const eight_sums found = s[j] + paired(rest[j], 1);
        _mm256_storeu_si256((__m256i *)(void *)(sum + 8 * j), (__m256i)found);
    }
}

#define LANE 8

ALWAYS void add_lanes(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                      unsigned lanes, int32_t *restrict sum)
{
    const uint16_t *at = p->large, *const end = at + p->larges, *stop;
    unsigned j;
    add_small(w, x, p, n, lanes, sum);
    for (; at < end; at = stop) {
        stop = end - at > 42 ? at + 42 : end;
        for (j = 0; j < lanes; j += 4) {
            add_large(w + 32 * j, x, at, stop, n, lanes < 4 ? lanes : 4, sum + 8 * j);
        }
    }
}

#if INT8
/* Adds pairs of four outputs each, twice, and what is left of them. */
ALWAYS void add_pairs(eight_sums a, eight_sums b, sixteen_sums rest, int32_t *sum)
{
    const __m256i mixed = _mm256_hadd_epi32((__m256i)a, (__m256i)b);
    const eight_sums halves = (eight_sums)_mm256_permute4x64_epi64(mixed, 0xd8);
    const eight_sums found = sums_at(sum) + 2 * halves + paired(rest, 1);
    _mm256_storeu_si256((__m256i *)(void *)sum, (__m256i)found);
}

/* Of 32 outputs and at most 128 groups, as 128 2 127 <= 32767. */
static void add_numbers(const int8_t *w, const uint8_t *high, const uint8_t *low, unsigned groups,
                        unsigned n, int32_t *restrict sum)
{
    const uint8_t *const end = low + 4 * groups;
    eight_sums s[8]; /* pairs of sums, of four outputs */
    sixteen_sums rest[4];
    unsigned k;
    for (k = 0; k < 8; ++k) {
        s[k] = (eight_sums)_mm256_setzero_si256();
        rest[k / 2] = (sixteen_sums)_mm256_setzero_si256();
    }
    for (; low < end; low += 4, high += 4, w += 4 * (size_t)n) {
        const __m128i above = _mm_cvtsi32_si128((int)four_of(high));
        const __m128i whole = _mm_unpacklo_epi8(_mm_cvtsi32_si128((int)four_of(low)), above);
        const __m256i half = _mm256_broadcastq_epi64(_mm_srli_epi16(whole, 1));
        const __m256i bits = _mm256_and_si256(broadcast(low), _mm256_set1_epi8(1));
        for (k = 0; k < 8; ++k) {
            const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(w + 16 * k));
            s[k] += (eight_sums)_mm256_madd_epi16(_mm256_cvtepi8_epi16(v), half);
        }
        for (k = 0; k < 4; ++k) {
            rest[k] += products(bits, w + 32 * k);
        }
    }
    add_pairs(s[0], s[1], rest[0], sum);
    add_pairs(s[2], s[3], rest[1], sum + 8);
    add_pairs(s[4], s[5], rest[2], sum + 16);
    add_pairs(s[6], s[7], rest[3], sum + 24);
}

static void add_first(const int8_t *w, const uint8_t *high, const uint8_t *low, unsigned groups,
                      unsigned n, int32_t *restrict sum)
{
    unsigned g, o;
    for (g = 0; g < groups; g += 128) {
        const unsigned some = groups - g < 128 ? groups - g : 128;
        for (o = 0; o < n; o += 32) {
            add_numbers(w + 4 * ((size_t)n * g + o), high + 4 * g, low + 4 * g, some, n, sum + o);
        }
    }
}
#endif
