/* Products by add_some, which reads the groups of four activations that a list names: those that
   are not all zero. A kernel that multiplies signed bytes alone defines SIGNED; activations are
   then taken apart as (x & 127) + (x & 128), and few of them are that large. */

/* The groups of a row. */
typedef struct {
    const uint16_t *group; /* or 0: every one */
    unsigned count, highs; /* how many there are; the first highs of them have activations >= 128 */
} listed;

static listed list_of(const uint8_t *x, unsigned groups, uint16_t *room)
{
    listed t = {room, 0, 0};
    unsigned g;
    for (g = 0; g < groups; ++g) {
        const uint32_t four = four_of(x + 4 * g);
#ifdef SIGNED
        const unsigned high = (four & 0x80808080u) != 0, at = high ? t.highs : t.count;
        room[t.count] = room[at];
        room[at] = (uint16_t)g;
        t.highs += high;
#else
        room[t.count] = (uint16_t)g;
#endif
        t.count += four != 0;
    }
    return t;
}

static void add_listed(const layer *l, const uint8_t *x, const listed *t, int32_t *restrict sum)
{
    const int8_t *w = l->weight;
    unsigned o;
    for (o = 0; o < l->outputs; o += BLOCK) {
        const unsigned n = block_of(l, o);
#ifdef SIGNED
        if (t->highs != 0) {
            add_some(w, x, 128, t->group, t->highs, n, sum + o);
        }
        add_some(w, x, 127, t->group, t->count, n, sum + o);
#else
        add_some(w, x, 255, t->group, t->count, n, sum + o);
#endif
        w += 4 * l->groups * n;
    }
}

static void add_products(const layer *l, const uint8_t *x, uint16_t *room, int32_t *restrict sum)
{
    const listed t = list_of(x, l->groups, room);
    add_listed(l, x, &t, sum);
}

/* Of every group: numbers of inputs are hardly ever zero. */
static void add_every(const layer *l, const uint8_t *x, int32_t *restrict sum)
{
    listed t = {0, 0, 0};
#ifdef SIGNED
    uint32_t any = 0;
    unsigned g;
    for (g = 0; g < l->groups; ++g) {
        any |= four_of(x + 4 * g);
    }
    t.highs = any & 0x80808080u ? l->groups : 0;
#endif
    t.count = l->groups;
    add_listed(l, x, &t, sum);
}

static void add_inputs(const layer *l, const uint8_t *high, const uint8_t *low,
                       int32_t *restrict sum)
{
    unsigned i;
    UNROLLED
    for (i = begin_lanes(l->bias, 0.0f, l->outputs, sum); i < l->outputs; ++i) {
        sum[i] = (int32_t)(l->bias[i] * 0.0f); /* a plain 0 becomes a call of memset */
    }
    add_every(l, high, sum);
    UNROLLED
    for (i = shift_lanes(l->bias, l->outputs, sum); i < l->outputs; ++i) {
        sum[i] = sum[i] * 256 + (int32_t)l->bias[i];
    }
    add_every(l, low, sum);
}
