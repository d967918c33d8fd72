/* sum += W x with add_some, which reads groups of four activations from lists: those that are not
   all zero. A kernel that multiplies signed bytes alone defines SIGNED; x is then taken apart as
   (x & 127) + (x & 128), and as few activations are that large, the second list is a short one. */

static void add_products(const layer *l, const uint8_t *x, uint16_t *group, int32_t *restrict sum)
{
    const int8_t *w = l->weight;
    const unsigned groups = l->groups, outputs = l->outputs;
    unsigned count = groups, g, o;
#ifdef SIGNED
    uint16_t *high = group == 0 ? 0 : group + groups;
    unsigned highs = groups;
#endif
    if (group != 0) {
        for (count = g = 0; g < groups; ++g) {
            group[count] = (uint16_t)g;
            count += four_of(x + 4 * g) != 0;
        }
#ifdef SIGNED
        for (highs = g = 0; g < groups; ++g) {
            high[highs] = (uint16_t)g;
            highs += (four_of(x + 4 * g) & 0x80808080u) != 0;
        }
#endif
    }
    for (o = 0; o < outputs; o += 64) {
        const unsigned n = outputs - o < 64 ? outputs - o : 64;
#ifdef SIGNED
        add_some(w, x, 128, high, highs, n, sum + o);
        add_some(w, x, 127, group, count, n, sum + o);
#else
        add_some(w, x, 255, group, count, n, sum + o);
#endif
        w += 4 * groups * n;
    }
}
