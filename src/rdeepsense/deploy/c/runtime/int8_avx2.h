/* add_some and add_first with AVX2.

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

/* Arrays of sums, and sums that it may move, gcc keeps on the stack. */
#if defined(__GNUC__)
#define IN_REGISTER(s) __asm__("" : "+x"(s));
#else
#define IN_REGISTER(s)
#endif
#define ONE(DO) DO(0)
#define TWO(DO) ONE(DO) DO(1)
#define FOUR(DO) TWO(DO) DO(2) DO(3)
#define EIGHT(DO) FOUR(DO) DO(4) DO(5) DO(6) DO(7)

/* Eight sums of 32 bits; with rests, also of their pairs in 16 bits. */
#define BEGIN(k) __m256i s##k = EIGHT_FOURS(sum + 8 * (k));
#define BEGIN_RESTS(k) __m256i r##k = _mm256_setzero_si256();
#define STAY(k) IN_REGISTER(s##k)
#define STAY_RESTS(k) IN_REGISTER(r##k)
#define ADD(k, words, by) s##k = _mm256_add_epi32(s##k, _mm256_madd_epi16(words, by));
#define ADD_RESTS(k, words) r##k = _mm256_add_epi16(r##k, words);
#define END(k) _mm256_storeu_si256((__m256i *)(void *)(sum + 8 * (k)), s##k);
#define END_RESTS(k)                   \
    ADD(k, r##k, _mm256_set1_epi16(1)) \
    END(k)

#define OF_GROUP(k) ADD(k, _mm256_maddubs_epi16(four, EIGHT_FOURS(v + 32 * (k))), one)
#define OF_TWO(k)                                                                              \
    {                                                                                          \
        const __m256i a = EIGHT_FOURS(v + 32 * (k)), b = EIGHT_FOURS(u + 32 * (k));            \
        ADD(k, _mm256_add_epi16(_mm256_maddubs_epi16(high, a), _mm256_maddubs_epi16(next, b)), \
            times)                                                                             \
        ADD_RESTS(k, _mm256_maddubs_epi16(low, a))                                             \
        ADD_RESTS(k, _mm256_maddubs_epi16(last, b))                                            \
    }

static inline __m256i broadcast(const uint8_t *x)
{
    return _mm256_set1_epi32((int)four_of(x));
}

/* Adds to 8 lanes outputs the groups from at to end; as groups are left out, only their list says
   which LINES of weights come next. */
#define AHEAD(k) _mm_prefetch((const char *)ahead + 64 * (k), _MM_HINT_T0);
#define ADD_LANES(lanes, EACH, LINES)                                                 \
    APART void add_##lanes(const int8_t *w, const uint8_t *x, const uint16_t *at,     \
                           const uint16_t *end, unsigned n, int32_t *restrict sum)    \
    {                                                                                 \
        const __m256i one = _mm256_set1_epi16(1);                                     \
        EACH(BEGIN)                                                                   \
        for (; at < end; ++at) {                                                      \
            const int8_t *const v = w + 4 * (size_t)n * *at;                          \
            const int8_t *const ahead = end - at > 3 ? w + 4 * (size_t)n * at[3] : v; \
            const __m256i four = broadcast(x + 4 * *at);                              \
            LINES(AHEAD)                                                              \
            EACH(OF_GROUP)                                                            \
            EACH(STAY)                                                                \
        }                                                                             \
        EACH(END)                                                                     \
    }
ADD_LANES(1, ONE, ONE)
ADD_LANES(4, FOUR, TWO)
ADD_LANES(8, EIGHT, FOUR)

/* The same of at most 42 large groups. */
#define ADD_LARGE(lanes, EACH)                                                                     \
    APART void add_large_##lanes(const int8_t *w, const uint8_t *x, const uint16_t *at,            \
                                 const uint16_t *end, unsigned n, int32_t *restrict sum)           \
    {                                                                                              \
        const __m256i times = _mm256_set1_epi16(4), three = _mm256_set1_epi8(3);                   \
        EACH(BEGIN)                                                                                \
        EACH(BEGIN_RESTS)                                                                          \
        for (; at < end; at += 2) {                                                                \
            const unsigned other = at + 1 < end ? at[1] : *at;                                     \
            const int8_t *const v = w + 4 * (size_t)n * *at, *const u = w + 4 * (size_t)n * other; \
            const __m256i x0 = broadcast(x + 4 * *at);                                             \
            const __m256i x1 = at + 1 < end ? broadcast(x + 4 * other) : _mm256_setzero_si256();   \
            const __m256i low = _mm256_and_si256(x0, three), last = _mm256_and_si256(x1, three);   \
            const __m256i high = _mm256_srli_epi16(_mm256_sub_epi8(x0, low), 2);                   \
            const __m256i next = _mm256_srli_epi16(_mm256_sub_epi8(x1, last), 2);                  \
            EACH(OF_TWO)                                                                           \
            EACH(STAY)                                                                             \
            EACH(STAY_RESTS)                                                                       \
        }                                                                                          \
        EACH(END_RESTS)                                                                            \
    }
ADD_LARGE(1, ONE)
ADD_LARGE(4, FOUR)

/* Of 8 lanes outputs. */
ALWAYS void add_lanes(const int8_t *w, const uint8_t *x, const picked *p, unsigned n,
                      unsigned lanes, int32_t *restrict sum)
{
    const uint16_t *at = p->group, *end = at + p->count;
    (lanes == 8 ? add_8 : lanes == 4 ? add_4 : add_1)(w, x, at, end, n, sum);
    for (at = p->large; at < p->large + p->larges; at = end) {
        end = p->large + p->larges - at > 42 ? at + 42 : p->large + p->larges;
        (lanes == 1 ? add_large_1 : add_large_4)(w, x, at, end, n, sum);
        if (lanes == 8) {
            add_large_4(w + 128, x, at, end, n, sum + 32);
        }
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

/* To four outputs at a time, in pairs; twice their sum and the rests to eight. */
#define BEGIN_PAIRS(k) __m256i p##k = _mm256_setzero_si256();
#define STAY_PAIRS(k) IN_REGISTER(p##k)
#define OF_HALVES(k)                                                                      \
    {                                                                                     \
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(w + 16 * (k))); \
        const __m256i words = _mm256_madd_epi16(_mm256_cvtepi8_epi16(v), half);           \
        p##k = _mm256_add_epi32(p##k, words);                                             \
    }
#define OF_BITS(k) ADD_RESTS(k, _mm256_maddubs_epi16(bits, EIGHT_FOURS(w + 32 * (k))))
#define END_PAIRS(k, a, b)                                                             \
    {                                                                                  \
        const __m256i found = _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8); \
        BEGIN(k)                                                                       \
        s##k = _mm256_add_epi32(s##k, _mm256_slli_epi32(found, 1));                    \
        END_RESTS(k)                                                                   \
    }

/* Of 32 outputs and at most 128 groups, as 128 2 127 <= 32767. */
APART void add_numbers(const int8_t *w, const uint8_t *high, const uint8_t *low, unsigned groups,
                       unsigned n, int32_t *restrict sum)
{
    const uint8_t *const end = low + 4 * groups;
    EIGHT(BEGIN_PAIRS)
    FOUR(BEGIN_RESTS)
    for (; low < end; low += 4, high += 4, w += 4 * (size_t)n) {
        const __m128i above = _mm_cvtsi32_si128((int)four_of(high));
        const __m128i whole = _mm_unpacklo_epi8(_mm_cvtsi32_si128((int)four_of(low)), above);
        const __m256i half = _mm256_broadcastq_epi64(_mm_srli_epi16(whole, 1));
        const __m256i bits = _mm256_and_si256(broadcast(low), _mm256_set1_epi8(1));
        EIGHT(OF_HALVES)
        FOUR(OF_BITS)
        EIGHT(STAY_PAIRS)
        FOUR(STAY_RESTS)
    }
    END_PAIRS(0, p0, p1)
    END_PAIRS(1, p2, p3)
    END_PAIRS(2, p4, p5)
    END_PAIRS(3, p6, p7)
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
