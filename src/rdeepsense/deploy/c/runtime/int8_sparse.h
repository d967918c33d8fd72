/* Layers by add_some, of the groups that pick lists, and by add_first. */

static void add_products(const layer *l, const uint8_t *x, uint16_t *room, int32_t *restrict sum)
{
    const int8_t *w = l->weight;
    picked p;
    unsigned o;
#ifdef FEW
    if (FEW(l->outputs)) {
        add_few(w, x, l->groups, l->outputs, sum);
        return;
    }
#endif
    p = pick(x, l->groups, room);
    for (o = 0; o < l->outputs; o += BLOCK) {
        const unsigned n = block_of(l->outputs, o);
        add_some(w, x, &p, n, sum + o);
        w += 4 * l->groups * n;
    }
}

#if INT8
static void begin_inputs(const layer *l, int32_t *restrict sum)
{
    unsigned o;
    for (o = begin_lanes(l->bias, 1.0f, l->outputs, sum); o < l->outputs; ++o) {
        sum[o] = (int32_t)l->bias[o];
    }
}

static void add_inputs(const layer *l, const uint8_t *high, const uint8_t *low,
                       int32_t *restrict sum)
{
    const int8_t *w = l->weight;
    unsigned o;
    begin_inputs(l, sum);
    for (o = 0; o < l->outputs; o += BLOCK) {
        const unsigned n = block_of(l->outputs, o);
        add_first(w, high, low, l->groups, n, sum + o);
        w += 4 * l->groups * n;
    }
}
#endif
