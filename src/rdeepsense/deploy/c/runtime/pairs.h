/* Of many rows, pairs that share a list of what is not zero, and so each weight that is read. Rows
   of one sensor have about the same zeros one after the other; of rows in any order a few dozen
   have likenesses enough. */

#define MASK ((MASKED + 63) / 64) /* words for so many bits */

typedef struct {
    uint64_t bits[MASK];
    unsigned count;
} mask;

static unsigned count_of(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

/* Who goes with whom, greedily: partner[r] > r is the row most like r of those that are left, r
   itself if one list of both were more than a third longer than theirs on average. It is ROWS for
   rows that are some other's partner. */
static void pair_up(const mask *of, unsigned rows, unsigned words, unsigned *partner)
{
    unsigned a, b, k;
    for (a = 0; a < rows; ++a) {
        partner[a] = a;
    }
    for (a = 0; a < rows; ++a) {
        unsigned best = a, fewest = ~0u;
        if (partner[a] == ROWS) {
            continue;
        }
        for (b = a + 1; b < rows; ++b) {
            unsigned all = 0;
            if (partner[b] == ROWS) {
                continue;
            }
            for (k = 0; k < words; ++k) {
                all += count_of(of[a].bits[k] | of[b].bits[k]);
            }
            if (all < fewest) {
                fewest = all;
                best = b;
            }
        }
        if (best > a && 3 * fewest <= 2 * (of[a].count + of[best].count)) {
            partner[a] = best;
            partner[best] = ROWS;
        }
    }
}
