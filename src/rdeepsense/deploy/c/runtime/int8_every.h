/* sum += W x with add_block, of every group: to skip did not pay here. */

#define add_products(l, x, group, sum) add_all((l)->weight, x, (l)->groups, (l)->outputs, sum)
static void add_all(const int8_t *w, const uint8_t *x, unsigned groups, unsigned outputs,
                    int32_t *restrict sum)
{
    unsigned o;
    for (o = 0; o < outputs; o += 64) {
        const unsigned n = outputs - o < 64 ? outputs - o : 64;
        add_block(w, x, groups, n, sum + o);
        w += 4 * groups * n;
    }
}
