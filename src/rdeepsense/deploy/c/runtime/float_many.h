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

#ifdef LISTS_SOME
#ifdef FOUR_ROWS
#define SHARED
#endif
#endif

#ifdef SHARED
/* Four neighbours have one list where that is not much longer than their own: rows of one sensor,
   one after the other, have about the same zeros. */

/* Whether a layer's weights are floats, and it has a register of outputs at least. */
static int is_wide(unsigned l)
{
#if HALVES
    if (layers[l].single == 0) {
        return 0;
    }
#endif
    return layers[l].outputs >= QUARTER;
}

/* Whether four rows have one list already. */
static int is_one_list(const work *w, const unsigned *count)
{
    unsigned i, r, differ = 0;
    for (r = 1; r < FOUR_ROWS; ++r) {
        differ |= count[r] != count[0];
        for (i = 0; i < count[0]; ++i) {
            differ |= w[r].index[i] != w[0].index[i];
        }
    }
    return !differ;
}

/* Whether one list pays: the first outputs of the four have together at most a third more. */
static int are_alike(unsigned l, const work *w)
{
    const unsigned some_of_them = least(layers[l].outputs, 128);
    unsigned each = 0, all = 0, i, r;
    for (i = 0; i < some_of_them; ++i) {
        unsigned some = 0;
        for (r = 0; r < FOUR_ROWS; ++r) {
            word h;
            h.value = w[r].raw[i];
            each += (int32_t)h.bits > 0;
            some |= (int32_t)h.bits > 0;
        }
        all += some;
    }
    return 3 * all <= each;
}

/* Makes one list of what four rows read next; returns its length. */
static unsigned end_together(unsigned l, work *w)
{
    unsigned count = 0, r, i = list_some(l, w, FOUR_ROWS, &count);
    for (; i < layers[l].outputs; ++i) {
        unsigned some = 0;
        for (r = 0; r < FOUR_ROWS; ++r) {
            const float h = w[r].raw[i];
#if HALVES
            w[r].value[count] = h > 0.0f ? h * layers[l + 1].gain : 0.0f;
#else
            w[r].value[count] = h > 0.0f ? h : 0.0f;
#endif
            w[r].index[count] = (uint16_t)i;
            some |= h > 0.0f;
        }
        count += some;
    }
    return count;
}

/* What add_layer does, of four rows with one list. */
static void add_layers(unsigned l, unsigned first, unsigned n, work *w, unsigned from,
                       unsigned count)
{
    const unsigned done =
        add_together(layers[l].single + first, APART(layers[l].outputs), n, w->value + from,
                     w->index + from, count, sizeof(work), w->raw + first);
    unsigned r;
    for (r = 0; r < FOUR_ROWS && done < n; ++r) {
        add_layer(l, first + done, n - done, w + r, from, count);
    }
}
#endif

static void networks(const float *x, unsigned rows, work *w, int *status)
{
    unsigned count[ROWS], l, o, c, r, most;
#ifdef SHARED
    int shared[(ROWS + 3) / 4] = {0};
#endif
    for (r = 0; r < rows; ++r) {
        status[r] = read_row(x + (size_t)r * MODEL_INPUTS, w + r, count + r);
#ifdef SHARED
        if (r % 4 == 3) {
            shared[r / 4] = is_wide(0) && is_one_list(w + r - 3, count + r - 3);
        }
#endif
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
#ifdef SHARED
                    if (r % 4 == 0 && shared[r / 4]) {
                        if (c < count[r]) {
                            add_layers(l, o, n, w + r, c, least(count[r] - c, PIECE_INPUTS));
                        }
                        r += 3;
                        continue;
                    }
#endif
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
#ifdef SHARED
            if (r % 4 == 0 && r + 4 <= rows) {
                shared[r / 4] = is_wide(l + 1) && are_alike(l, w + r);
                if (shared[r / 4]) {
                    count[r] = end_together(l, w + r);
                    count[r + 1] = count[r + 2] = count[r + 3] = count[r];
                    r += 3;
                    continue;
                }
            }
#endif
            count[r] = end_layer(l, w + r);
        }
    }
#if NARROWED
    for (r = 0; r < rows; ++r) {
        w[r].count = count[r];
    }
#endif
}
