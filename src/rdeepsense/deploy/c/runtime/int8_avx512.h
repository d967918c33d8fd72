/* add_some with AVX-512 VNNI: sixteen outputs of a group of four in one instruction. */

static void add_some(const int8_t *w, const uint8_t *x, const uint16_t *group, unsigned count,
                     unsigned n, int32_t *restrict sum)
{
    __m512i s[4];
    unsigned g, j;
    for (j = 0; j < 4; ++j) {
        s[j] = _mm512_loadu_si512(sum + 16 * j);
    }
    for (g = 0; g < count; ++g) {
        const unsigned at = group == 0 ? g : group[g];
        const int8_t *p = w + 4 * n * at;
        const __m512i four = _mm512_set1_epi32((int)four_of(x + 4 * at));
        for (j = 0; j < 4; ++j) {
            s[j] = _mm512_dpbusd_epi32(s[j], four, _mm512_loadu_si512(p + 64 * j));
        }
    }
    for (j = 0; j < 4; ++j) {
        _mm512_storeu_si512(sum + 16 * j, s[j]);
    }
}
