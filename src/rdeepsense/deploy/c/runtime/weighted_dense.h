/* Layers of processors with wide registers: every input, a few rows at once. */

#if TOGETHER
/* Intervals of a window at a time. Each has a `work` of its own, which lies on the stack: where
   that is short, define SMALL_STACK. */
#define ABREAST FEW
#endif

/* sum = b for some rows. */
static void begin_sums(const float *bias, unsigned n, unsigned rows, float *sum, size_t apart)
{
    unsigned r, j;
    for (r = 0; r < rows; ++r) {
        for (j = 0; j < n; ++j) {
            sum[r * apart + j] = bias[j];
        }
    }
}

static float above_zero(float s)
{
    return s < 0.0f ? 0.0f : s;
}

static void linear(const weights *l, unsigned rows, const float *x, size_t x_apart, float *y,
                   size_t y_apart, list *t)
{
    const unsigned n = l->outputs;
    factors a = {0, 1, 0, 0, 0, 0, 1};
    unsigned few, r, o;
    a.apart = x_apart;
    a.inputs = l->inputs;
    begin_sums(l->bias, n, rows, y, y_apart);
    for (; rows > 0; rows -= few, x += few * x_apart, y += few * y_apart) {
        few = rows < FEW ? rows : FEW;
        a.x = x;
        for (o = 0; o < n; o += PANEL) {
            add_panel(l->weight + (size_t)o * l->inputs, panel_of(n, o), &a, few, y + o, y_apart);
        }
        for (r = 0; r < few && l->relu; ++r) {
            for (o = 0; o < n; ++o) {
                y[r * y_apart + o] = above_zero(y[r * y_apart + o]);
            }
        }
    }
    (void)t;
}

#if CONVOLVED
/* A few rows, or places of one row, that read the same taps of the kernel, `first` to `last`. */
typedef struct {
    const float *x; /* where the first of them reads tap `first` */
    float *y;
    size_t x_apart, y_apart;
    unsigned count, first, last;
} places;

static void convolve_places(const weights *l, const plane *p, unsigned group, int32_t top,
                            const places *a)
{
    const unsigned n = l->outputs, channels = l->inputs / (p->kernel_height * p->kernel_width);
    const float *weight = l->weight + (size_t)group * n * l->inputs;
    const size_t to = (size_t)p->to_height * p->to_width;
    float sum[FEW * SUMS];
    unsigned r, o, i;
    begin_sums(l->bias + group * n, n, a->count, sum, SUMS);
    for (i = 0; i < p->kernel_height; ++i) {
        const int32_t row = top + (int32_t)(i * p->dilated_down);
        factors f;
        if (row < 0 || row >= p->height) {
            continue;
        }
        f.x = a->x + (size_t)row * p->width;
        f.step = (size_t)p->height * p->width;
        f.apart = a->x_apart;
        f.far = p->dilated_across;
        f.inputs = channels;
        f.stretches = a->last - a->first;
        for (o = 0; o < n; o += PANEL) {
            const unsigned m = panel_of(n, o);
            const float *w = weight + (size_t)o * l->inputs + (size_t)i * channels * m;
            f.further = (size_t)p->kernel_height * channels * m;
            add_panel(w + a->first * f.further, m, &f, a->count, sum + o, SUMS);
        }
    }
    for (r = 0; r < a->count; ++r) {
        for (o = 0; o < n; ++o) {
            const float s = sum[r * SUMS + o];
            a->y[r * a->y_apart + o * to] = l->relu ? above_zero(s) : s;
        }
    }
}

/* How many places from this column on, of which each has all taps inside of the plane. */
static unsigned whole_places(const plane *p, int32_t column, unsigned most)
{
    const int32_t end = p->width - (p->kernel_width - 1) * p->dilated_across;
    unsigned count = 1;
    while (count < most && column + (int32_t)(count * p->across) < end) {
        ++count;
    }
    return count;
}

/* One row of the plane that comes out, of a few rows: all of them at each place, or of one alone
   several places. */
static void convolve_row(const weights *l, const plane *p, unsigned group, int32_t top, places a)
{
    const int32_t tap = p->dilated_across;
    const unsigned rows = a.count;
    const float *x = a.x;
    unsigned j, more;
    for (j = 0; j < p->to_width; j += more, a.y += more) {
        const int32_t column = (int32_t)(j * p->across) - p->before;
        a.first = 0;
        a.last = p->kernel_width;
        while (a.first < a.last && column + (int32_t)a.first * tap < 0) {
            ++a.first;
        }
        while (a.first < a.last && column + (int32_t)(a.last - 1) * tap >= p->width) {
            --a.last;
        }
        a.x = a.first < a.last ? x + (column + (int32_t)a.first * tap) : x;
        more = 1;
        if (rows == 1 && a.last - a.first == p->kernel_width) {
            const unsigned left = p->to_width - j;
            more = whole_places(p, column, left < FEW ? left : FEW);
        }
        if (rows == 1) {
            a.count = more;
            a.x_apart = p->across;
            a.y_apart = 1;
        }
        convolve_places(l, p, group, top, &a);
    }
}

static void convolve(const weights *l, const plane *p, unsigned rows, const float *x,
                     size_t x_apart, float *y, size_t y_apart, list *t)
{
    const size_t from = (size_t)p->height * p->width, to = (size_t)p->to_height * p->to_width;
    const unsigned channels = l->inputs / (p->kernel_height * p->kernel_width);
    unsigned g, i, few;
    for (; rows > 0; rows -= few, x += few * x_apart, y += few * y_apart) {
        few = rows < FEW ? rows : FEW;
        for (g = 0; g < p->groups; ++g) {
            for (i = 0; i < p->to_height; ++i) {
                places a = {0, 0, 0, 0, 0, 0, 0};
                a.x = x + g * channels * from;
                a.y = y + g * l->outputs * to + (size_t)i * p->to_width;
                a.x_apart = x_apart;
                a.y_apart = y_apart;
                a.count = few;
                convolve_row(l, p, g, (int32_t)(i * p->down) - p->above, a);
            }
        }
    }
    (void)t;
}
#endif
