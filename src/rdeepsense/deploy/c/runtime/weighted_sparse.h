/* Layers as lists of the inputs that are not zero: few instructions where registers are narrow. */

/* sum += W value for the n outputs of a panel, four columns of W at a time. */
static void add_panel(const float *weight, unsigned n, const float *restrict value,
                      const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    unsigned c, j;
    for (c = 0; c < count; c += 4) {
        const float *restrict p = weight + (size_t)index[c] * n;
        const float *restrict q = weight + (size_t)index[c + 1] * n;
        const float *restrict r = weight + (size_t)index[c + 2] * n;
        const float *restrict s = weight + (size_t)index[c + 3] * n;
        const float a = value[c], b = value[c + 1], d = value[c + 2], e = value[c + 3];
        for (j = 0; j < n; ++j) {
            sum[j] += (a * p[j] + b * q[j]) + (d * r[j] + e * s[j]);
        }
    }
}

/* sum += W value, from input `first` of the layer on. */
static void add_products(const weights *l, const float *weight, unsigned first, const float *value,
                         const uint16_t *index, unsigned count, float *sum)
{
    unsigned o;
    for (o = 0; o < l->outputs; o += PANEL) {
        const unsigned n = panel_of(l->outputs, o);
        const float *from = weight + (size_t)o * l->inputs + (size_t)first * n;
        add_panel(from, n, value, index, count, sum + o);
    }
}

/* Adds zeros up to a multiple of four; returns how many numbers there are then. */
static unsigned filled(float *value, uint16_t *index, unsigned count)
{
    for (; count % 4 != 0; ++count) {
        value[count] = 0.0f;
        index[count] = 0;
    }
    return count;
}

static void begin_sums(unsigned n, float *sum)
{
    unsigned j;
    for (j = 0; j < n; ++j) {
        sum[j] = 0.0f;
    }
}

/* Sums of the outputs from first on become what the layer says. */
static void end_sums(const weights *l, unsigned first, float *restrict sum)
{
    unsigned j;
    for (j = 0; j < l->outputs; ++j) {
        const float s = sum[j] + l->bias[first + j];
        sum[j] = l->relu && s < 0.0f ? 0.0f : s;
    }
}

/* W x + b in list->sum; inputs that are zero add nothing. */
static void add_up(const weights *l, const float *x, list *t)
{
    unsigned count = 0, i;
    for (i = 0; i < l->inputs; ++i) {
        const float v = x[i];
        t->value[count] = v;
        t->index[count] = (uint16_t)i;
        count += size_of(v) != 0;
    }
    begin_sums(l->outputs, t->sum);
    count = filled(t->value, t->index, count);
    add_products(l, l->weight, 0, t->value, t->index, count, t->sum);
    end_sums(l, 0, t->sum);
}

static void linear(const weights *l, unsigned rows, const float *x, size_t x_apart, float *y,
                   size_t y_apart, list *t)
{
    unsigned r, j;
    for (r = 0; r < rows; ++r, x += x_apart, y += y_apart) {
        add_up(l, x, t);
        for (j = 0; j < l->outputs; ++j) {
            y[j] = t->sum[j];
        }
    }
}

#if CONVOLVED
/* Lists what the kernel reads of one column of the plane, from row top on; rows outside of the
   plane are zeros. Returns how many numbers that are. */
static unsigned listed(const plane *p, const float *x, unsigned channels, int32_t top,
                       float *restrict value, uint16_t *restrict index)
{
    const size_t size = (size_t)p->height * p->width;
    unsigned count = 0, c, i;
    for (i = 0; i < p->kernel_height; ++i) {
        const int32_t row = top + (int32_t)(i * p->dilated_down);
        const float *from;
        if (row < 0 || row >= p->height) {
            continue;
        }
        from = x + (size_t)row * p->width;
        for (c = 0; c < channels; ++c) {
            const float v = from[c * size];
            value[count] = v;
            index[count] = (uint16_t)(i * channels + c);
            count += size_of(v) != 0; /* of bits: floats may be unordered, which costs */
        }
    }
    return filled(value, index, count);
}

/* One row of what comes out. A column is listed once for all places of the kernel that read it. */
static void convolve_row(const weights *l, const plane *p, unsigned group, unsigned row,
                         const float *x, float *y, list *t)
{
    const unsigned n = l->outputs, deep = l->inputs / p->kernel_width, room = (deep + 3) / 4 * 4;
    const float *weight = l->weight + (size_t)group * n * l->inputs;
    const int32_t top = (int32_t)(row * p->down) - p->above;
    const size_t to = (size_t)p->to_height * p->to_width;
    unsigned j, k;
    for (k = 0; k < p->kernel_width; ++k) {
        t->held[k] = -1;
    }
    for (j = 0; j < p->to_width; ++j) {
        begin_sums(n, t->sum);
        for (k = 0; k < p->kernel_width; ++k) {
            const int32_t column =
                (int32_t)(j * p->across) - p->before + (int32_t)(k * p->dilated_across);
            const unsigned slot = (unsigned)(column < 0 ? 0 : column) % p->kernel_width;
            float *value = t->value + (size_t)slot * room;
            uint16_t *index = t->index + (size_t)slot * room;
            if (column < 0 || column >= p->width) {
                continue;
            }
            if (t->held[slot] != column) {
                t->held[slot] = column;
                t->count[slot] = listed(p, x + column, deep / p->kernel_height, top, value, index);
            }
            add_products(l, weight, k * deep, value, index, t->count[slot], t->sum);
        }
        end_sums(l, group * n, t->sum);
        for (k = 0; k < n; ++k) {
            y[k * to + j] = t->sum[k];
        }
    }
}

static void convolve(const weights *l, const plane *p, unsigned rows, const float *x,
                     size_t x_apart, float *y, size_t y_apart, list *t)
{
    const size_t from = (size_t)p->height * p->width, to = (size_t)p->to_height * p->to_width;
    const unsigned channels = l->inputs / (p->kernel_height * p->kernel_width);
    unsigned r, g, i;
    for (r = 0; r < rows; ++r, x += x_apart, y += y_apart) {
        for (g = 0; g < p->groups; ++g) {
            for (i = 0; i < p->to_height; ++i) {
                convolve_row(l, p, g, i, x + g * channels * from,
                             y + g * l->outputs * to + (size_t)i * p->to_width, t);
            }
        }
    }
}
#endif
