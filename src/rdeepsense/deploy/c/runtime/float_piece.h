/* Of many rows: products of a piece of the outputs, whose sums stay in registers. They are added
   one after the other, as in add_singles, so that the numbers of a row are the same to the bit. */

#if defined(__FMA__) && defined(__AVX2__) && defined(__OPTIMIZE__)
#if defined(__AVX512F__)
#define PIECE_OUTPUTS 128
#define AT_ONCE 128 /* outputs whose sums of two rows fit registers */
#define WIDE 16
typedef __m512 wide;
typedef __mmask16 some_of;
#define WIDE_LOAD(p) _mm512_loadu_ps(p)
#define WIDE_STORE(p, v) _mm512_storeu_ps(p, v)
#define WIDE_FUSED(a, w, sum) _mm512_fmadd_ps(_mm512_set1_ps(a), w, sum)
#define FIRST_FEW(n, from) (__mmask16)((1u << (n)) - 1u)
#define LOAD_SOME(p, some) _mm512_maskz_loadu_ps(some, p)
#define STORE_SOME(p, some, v) _mm512_mask_storeu_ps(p, some, v)
#else
#define PIECE_OUTPUTS 96
#define AT_ONCE 48
#define WIDE 8
typedef __m256 wide;
typedef __m256i some_of;
#define WIDE_LOAD(p) _mm256_loadu_ps(p)
#define WIDE_STORE(p, v) _mm256_storeu_ps(p, v)
#define WIDE_FUSED(a, w, sum) _mm256_fmadd_ps(_mm256_set1_ps(a), w, sum)
#define FIRST_FEW(n, from)                                        \
    _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n) - (int)(from)), \
                       _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0))
#define LOAD_SOME(p, some) _mm256_maskload_ps(p, some)
#define STORE_SOME(p, some, v) _mm256_maskstore_ps(p, some, v)
#endif

#define SIXTEEN 16 /* outputs, in one register or two */
#define PARTS (SIXTEEN / WIDE)
#define INLINED static inline __attribute__((always_inline))

/* The same place of row r: rows are `apart` bytes from each other. */
#define AT(p, r) ((const float *)(const void *)((const char *)(p) + (r)*apart))
#define SUM_AT(p, r) ((float *)(void *)((char *)(p) + (r)*apart))

/* For one row, or two with one list: for the first few of sixteen outputs after so many full ones.
   Nothing is read or written beyond them. */
INLINED void add_sixteens(const float *from, size_t high, const float *value, const uint16_t *index,
                          unsigned count, size_t apart, unsigned rows, unsigned full, unsigned few,
                          float *sum)
{
    const unsigned wides = full * PARTS, all = few > 0 ? wides + PARTS : wides;
    some_of some[PARTS];
    wide s[2][AT_ONCE / WIDE];
    unsigned c, k, r;
    for (k = 0; k < PARTS; ++k) {
        some[k] = FIRST_FEW(few, WIDE * k);
    }
    for (r = 0; r < rows; ++r) {
        for (k = 0; k < wides; ++k) {
            s[r][k] = WIDE_LOAD(AT(sum + WIDE * k, r));
        }
        for (; k < all; ++k) {
            s[r][k] = LOAD_SOME(AT(sum + WIDE * k, r), some[k - wides]);
        }
    }
    for (c = 0; c < count; ++c) {
        const float *w = from + index[c] * high;
        for (k = 0; k < all; ++k) {
            wide v = k < wides ? WIDE_LOAD(w + WIDE * k) : LOAD_SOME(w + WIDE * k, some[k - wides]);
            if (rows > 1) {
                __asm__("" : "+v"(v)); /* or gcc loads it twice */
            }
            for (r = 0; r < rows; ++r) {
                s[r][k] = WIDE_FUSED(*AT(value + c, r), v, s[r][k]);
            }
        }
    }
    for (r = 0; r < rows; ++r) {
        for (k = 0; k < wides; ++k) {
            WIDE_STORE(SUM_AT(sum + WIDE * k, r), s[r][k]);
        }
        for (; k < all; ++k) {
            STORE_SOME(SUM_AT(sum + WIDE * k, r), some[k - wides], s[r][k]);
        }
    }
}

/* For n <= PIECE_OUTPUTS outputs. */
INLINED void add_outputs(const float *from, size_t high, unsigned n, const float *value,
                         const uint16_t *index, unsigned count, size_t apart, unsigned rows,
                         float *sum)
{
    for (; n >= AT_ONCE; n -= AT_ONCE, from += AT_ONCE, sum += AT_ONCE) {
        add_sixteens(from, high, value, index, count, apart, rows, AT_ONCE / SIXTEEN, 0, sum);
    }
    switch ((n + SIXTEEN - 1) / SIXTEEN) {
#define LAST(k)                                                                              \
    case k + 1:                                                                              \
        add_sixteens(from, high, value, index, count, apart, rows, k, n - k * SIXTEEN, sum); \
        break;
        LAST(0)
        LAST(1)
        LAST(2)
#if defined(__AVX512F__)
        LAST(3)
        LAST(4)
        LAST(5)
        LAST(6)
        LAST(7)
#endif
#undef LAST
    default:
        break;
    }
}

static void add_piece(const float *from, size_t high, unsigned n, const float *value,
                      const uint16_t *index, unsigned count, float *sum)
{
    add_outputs(from, high, n, value, index, count, 0, 1, sum);
}

/* Of two rows, whose lists have the same inputs: weights are read once for both. */
static void add_both(const float *from, size_t high, unsigned n, const float *value,
                     const uint16_t *index, unsigned count, size_t apart, float *sum)
{
    add_outputs(from, high, n, value, index, count, apart, 2, sum);
}

/* For n <= SIXTEEN outputs of four rows, whose lists are their own: sums of one alone would wait
   for themselves. */
#define FOUR_ROWS 4
static void add_narrow(const float *from, size_t high, unsigned n, const float *value,
                       const uint16_t *index, unsigned count, size_t apart, float *sum)
{
    some_of some[PARTS];
    wide s[FOUR_ROWS][PARTS];
    unsigned c, k, r;
    for (k = 0; k < PARTS; ++k) {
        some[k] = FIRST_FEW(n, WIDE * k);
        for (r = 0; r < FOUR_ROWS; ++r) {
            s[r][k] = LOAD_SOME(AT(sum + WIDE * k, r), some[k]);
        }
    }
    for (c = 0; c < count; ++c) {
        for (r = 0; r < FOUR_ROWS; ++r) {
            const void *at = (const char *)(index + c) + r * apart;
            const float *w = from + *(const uint16_t *)at * high;
            for (k = 0; k < PARTS; ++k) {
                const wide v = LOAD_SOME(w + WIDE * k, some[k]);
                s[r][k] = WIDE_FUSED(*AT(value + c, r), v, s[r][k]);
            }
        }
    }
    for (k = 0; k < PARTS; ++k) {
        for (r = 0; r < FOUR_ROWS; ++r) {
            STORE_SOME(SUM_AT(sum + WIDE * k, r), some[k], s[r][k]);
        }
    }
}
#endif
