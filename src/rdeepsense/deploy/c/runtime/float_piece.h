/* Of many rows: products of a piece of 64 outputs, whose sums stay in registers. They are added one
   after the other, as in add_singles, so that the numbers of a row are the same to the bit. */

#if defined(__FMA__) && defined(__OPTIMIZE__)
#define PIECE_OUTPUTS 64
#if defined(__AVX512F__)
#define WIDE 16
typedef __m512 wide;
#define WIDE_LOAD(p) _mm512_loadu_ps(p)
#define WIDE_STORE(p, v) _mm512_storeu_ps(p, v)
#define WIDE_FUSED(a, w, sum) _mm512_fmadd_ps(_mm512_set1_ps(a), w, sum)
#else
#define WIDE 8
typedef __m256 wide;
#define WIDE_LOAD(p) _mm256_loadu_ps(p)
#define WIDE_STORE(p, v) _mm256_storeu_ps(p, v)
#define WIDE_FUSED(a, w, sum) _mm256_fmadd_ps(_mm256_set1_ps(a), w, sum)
#endif

#define QUARTER (PIECE_OUTPUTS / 4)

/* For so many quarters of a piece. */
static inline __attribute__((always_inline)) void
add_quarters(const float *from, size_t high, const float *restrict value,
             const uint16_t *restrict index, unsigned count, unsigned quarters, float *restrict sum)
{
    wide s[PIECE_OUTPUTS / WIDE];
    unsigned c, k;
    for (k = 0; k < quarters * QUARTER / WIDE; ++k) {
        s[k] = WIDE_LOAD(sum + WIDE * k);
    }
    for (c = 0; c < count; ++c) {
        const float *w = from + index[c] * high;
        for (k = 0; k < quarters * QUARTER / WIDE; ++k) {
            s[k] = WIDE_FUSED(value[c], WIDE_LOAD(w + WIDE * k), s[k]);
        }
    }
    for (k = 0; k < quarters * QUARTER / WIDE; ++k) {
        WIDE_STORE(sum + WIDE * k, s[k]);
    }
}

/* Returns for how many of n <= PIECE_OUTPUTS outputs that was. */
static unsigned add_piece(const float *from, size_t high, unsigned n, const float *restrict value,
                          const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    switch (n / QUARTER) {
    case 4:
        add_quarters(from, high, value, index, count, 4, sum);
        break;
    case 3:
        add_quarters(from, high, value, index, count, 3, sum);
        break;
    case 2:
        add_quarters(from, high, value, index, count, 2, sum);
        break;
    case 1:
        add_quarters(from, high, value, index, count, 1, sum);
        break;
    default:
        break;
    }
    return n / QUARTER * QUARTER;
}

/* Of four rows, whose lists have the same inputs: their weights are read once for all of them. */
#define FOUR_ROWS 4
#define AT(p, r) ((const float *)(const void *)((const char *)(p) + (r)*apart))

static inline __attribute__((always_inline)) void
add_tile(const float *from, size_t high, const float *value, const uint16_t *index, unsigned count,
         size_t apart, unsigned quarters, float *sum)
{
    wide s[FOUR_ROWS][PIECE_OUTPUTS / WIDE];
    unsigned c, k, r;
    for (r = 0; r < FOUR_ROWS; ++r) {
        for (k = 0; k < quarters * QUARTER / WIDE; ++k) {
            s[r][k] = WIDE_LOAD(AT(sum + WIDE * k, r));
        }
    }
    for (c = 0; c < count; ++c) {
        const float *w = from + index[c] * high;
        for (k = 0; k < quarters * QUARTER / WIDE; ++k) {
            const wide v = WIDE_LOAD(w + WIDE * k);
            for (r = 0; r < FOUR_ROWS; ++r) {
                s[r][k] = WIDE_FUSED(*AT(value + c, r), v, s[r][k]);
            }
        }
    }
    for (r = 0; r < FOUR_ROWS; ++r) {
        for (k = 0; k < quarters * QUARTER / WIDE; ++k) {
            WIDE_STORE((float *)(void *)((char *)(sum + WIDE * k) + r * apart), s[r][k]);
        }
    }
}

/* The rows are `apart` bytes from each other. Returns for how many outputs that was. */
static unsigned add_together(const float *from, size_t high, unsigned n, const float *value,
                             const uint16_t *index, unsigned count, size_t apart, float *sum)
{
    unsigned done = 0;
#if defined(__AVX512F__)
    for (; done + PIECE_OUTPUTS <= n; done += PIECE_OUTPUTS) {
        add_tile(from + done, high, value, index, count, apart, 4, sum + done);
    }
#endif
    for (; done + QUARTER <= n; done += QUARTER) {
        add_tile(from + done, high, value, index, count, apart, 1, sum + done);
    }
    return done;
}
#endif
