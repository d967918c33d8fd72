/* Many rows in bytes: block by block of a layer's outputs, whose weights stay near for all rows. */

#ifdef FOUR_ROWS
/* Groups of four neighbours: rows of one sensor, one after the other, have about the same zeros. */
typedef struct {
    uint16_t group[ROOM / 4];
    unsigned count; /* 0 where each row goes by itself */
} shared;

/* Whether they have so few groups together that to read weights once for all four pays. */
static void share(const work *w, const picked *some, unsigned groups, shared *s)
{
    const unsigned each = some[0].count + some[1].count + some[2].count + some[3].count;
    const unsigned all = pick_together(w->byte, sizeof(work), groups, s->group);
    s->count = 3 * all <= each ? all : 0;
}
#endif

static void networks(const float *x, unsigned rows, work *w, int *status)
{
    float step[ROWS];
    unsigned l, o, r;
#ifdef SKIPPING
    picked some[ROWS];
#endif
#ifdef FOUR_ROWS
    shared fours[(ROWS + 3) / 4];
#endif
    for (r = 0; r < rows; ++r) {
        status[r] = read_row(x + (size_t)r * MODEL_INPUTS, w + r);
        step[r] = 1.0f;
    }
#ifdef SKIPPING
    for (r = 0; r < rows; ++r) {
        begin_inputs(layers, w[r].sum);
    }
    for (o = 0; o < layers[0].outputs; o += BLOCK) {
        const unsigned n = block_of(layers[0].outputs, o);
        const int8_t *from = layers[0].weight + (size_t)4 * layers[0].groups * o;
        for (r = 0; r < rows; ++r) {
            add_first(from, w[r].byte, w[r].room.low, layers[0].groups, n, w[r].sum + o);
        }
    }
#else
    for (r = 0; r < rows; ++r) {
        add_inputs(layers, w[r].byte, w[r].room.low, w[r].sum);
    }
#endif
    for (l = 1; l < LAYERS; ++l) {
        for (r = 0; r < rows; ++r) {
            step[r] = begin_layer(l, w + r, step[r]);
#ifdef SKIPPING
            some[r] = pick(w[r].byte, layers[l].groups, w[r].room.group);
#endif
#ifdef FOUR_ROWS
            if (r % 4 == 3) {
                share(w + r - 3, some + r - 3, layers[l].groups, fours + r / 4);
            }
#endif
        }
        for (o = 0; o < layers[l].outputs; o += BLOCK) {
            const unsigned n = block_of(layers[l].outputs, o);
            const int8_t *from = layers[l].weight + (size_t)4 * layers[l].groups * o;
            for (r = 0; r < rows; ++r) {
#ifdef FOUR_ROWS
                const shared *s = fours + r / 4;
                if (n > 32 && r % 4 == 0 && r + 4 <= rows && s->count > 0) {
                    add_together(from, w[r].byte, sizeof(work), s->group, s->count, n,
                                 w[r].sum + o);
                    r += 3;
                    continue;
                }
#endif
#ifdef SKIPPING
                add_some(from, w[r].byte, some + r, n, w[r].sum + o);
#else
                add_block(from, w[r].byte, layers[l].groups, n, w[r].sum + o);
#endif
            }
        }
    }
    for (r = 0; r < rows; ++r) {
        end_network(w + r, step[r]);
    }
}
