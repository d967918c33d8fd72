/* Many rows in bytes: block by block of a layer's outputs, whose weights stay near for all rows. */

static void networks(const float *x, unsigned rows, work *w, int *status)
{
    float step[ROWS];
    unsigned l, o, r;
#ifdef SKIPPING
    picked some[ROWS];
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
        }
        for (o = 0; o < layers[l].outputs; o += BLOCK) {
            const unsigned n = block_of(layers[l].outputs, o);
            const int8_t *from = layers[l].weight + (size_t)4 * layers[l].groups * o;
            for (r = 0; r < rows; ++r) {
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
