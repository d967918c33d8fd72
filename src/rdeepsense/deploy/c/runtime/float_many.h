/* Many rows in floats: piece by piece of a layer's weights, which stays near for all rows. The sums
   of a row are added in the order of one row alone, so its numbers are the same to the bit. */
#if !SINGLES
#ifdef STRIP
#define PIECE_OUTPUTS (STRIP * STRIPS)
#endif
#endif
#ifndef PIECE_OUTPUTS
#define PIECE_OUTPUTS 64
#endif
#define PIECE_INPUTS 48 /* of a row's list */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void networks(const float *x, unsigned rows, work *w, int *status)
{
    unsigned count[ROWS], l, o, c, r, most;
    for (r = 0; r < rows; ++r) {
        status[r] = read_row(x + (size_t)r * MODEL_INPUTS, w + r, count + r);
    }
    for (l = 0;; ++l) {
        const unsigned outputs = layers[l].outputs;
        for (r = most = 0; r < rows; ++r) {
            count[r] = begin_layer(l, w + r, count[r]);
            most = count[r] > most ? count[r] : most;
        }
        for (o = 0; o < outputs; o += PIECE_OUTPUTS) {
            const unsigned n = least(outputs - o, PIECE_OUTPUTS);
            for (c = 0; c < most; c += PIECE_INPUTS) {
                for (r = 0; r < rows; ++r) {
                    if (c < count[r]) {
                        add_layer(l, o, n, w + r, c, least(count[r] - c, PIECE_INPUTS));
                    }
                }
            }
        }
        if (l + 1 == LAYERS) {
            break;
        }
        for (r = 0; r < rows; ++r) {
            count[r] = end_layer(l, w + r);
        }
    }
#if NARROWED
    for (r = 0; r < rows; ++r) {
        w[r].count = count[r];
    }
#endif
}
