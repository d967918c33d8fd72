/* Layers of bytes: weights and what they read, which is rounded vector by vector; sums of products
   are exact. */

typedef struct {
    float sum[SUMS];
    int32_t whole[WHOLES]; /* sums of products */
    uint8_t byte[ROOM];    /* what a layer reads */
    uint8_t low[LOW];      /* of two bytes the lower ones */
    uint16_t group[GROUPS];
} list;

/* How numbers become bytes: q = x per + zero, of which the whole part counts, and x is then
   (q - offset) step. */
typedef struct {
    float per, zero, step;
    int32_t offset;
} rounding;

/* Of n numbers; with levels in two bytes. */
static rounding rounding_of(const float *x, size_t n, unsigned levels)
{
    rounding r = {0.0f, 0.0f, 0.0f, 0};
    uint32_t most = 0, top = 0;
    word size;
    size_t i;
    for (i = 0; i < n; ++i) {
        word v;
        v.value = x[i];
        most = v.bits > most ? v.bits : most; /* with its sign, which is the highest bit */
        v.bits &= 0x7fffffffu;
        top = v.bits > top ? v.bits : top;
    }
    size.bits = top;
    if (levels > 0) {
        r.offset = (int32_t)levels + 1;
    } else {
        r.offset = most > 0x80000000u ? 128 : 0;
        levels = r.offset ? 127 : 255;
    }
    r.zero = (float)r.offset;
    if (size.value >= 1e-30f) {
        r.per = (float)levels / size.value;
        r.step = size.value / (float)levels;
        r.zero += 0.5f;
    }
    return r;
}

static uint32_t as_whole(float x, const rounding *r)
{
    return (uint32_t)(int32_t)(x * r->per + r->zero);
}

/* Numbers that lie apart become bytes, which do too. */
static void to_bytes(const weights *l, const rounding *r, const float *x, size_t x_apart,
                     unsigned n, size_t at, size_t apart, list *t)
{
    unsigned i;
    if (l->levels > 0) {
        for (i = 0; i < n; ++i, at += apart) {
            const uint32_t q = as_whole(x[i * x_apart], r);
            t->byte[at] = (uint8_t)(q >> 8);
            t->low[at] = (uint8_t)(q & 255u);
        }
    } else {
        for (i = 0; i < n; ++i, at += apart) {
            t->byte[at] = (uint8_t)as_whole(x[i * x_apart], r);
        }
    }
}

/* y = W x + b of one group of outputs from the bytes at this place; outputs lie apart. */
static void add_up(const weights *l, unsigned group, const rounding *r, size_t at, float *y,
                   size_t y_apart, list *t)
{
    const unsigned n = l->whole.outputs, first = group * n;
    const float *factor = l->whole.factor + first, *bias = l->whole.bias + first;
    const int32_t *total = l->total ? l->total + first : 0;
    const int wide = l->levels > 0;
    layer one = l->whole;
    unsigned o;
    one.weight += (size_t)group * 4 * one.groups * n;
    if (total && !wide) {
        const int32_t less = r->offset;
        for (o = 0; o < n; ++o) {
            t->whole[o] = -less * total[o];
        }
    } else {
        for (o = 0; o < n; ++o) {
            t->whole[o] = 0;
        }
    }
    add_products(&one, t->byte + at, t->group, t->whole);
    if (wide) {
        for (o = 0; o < n; ++o) {
            t->whole[o] = 256 * t->whole[o] - r->offset * total[o];
        }
        add_products(&one, t->low + at, t->group, t->whole);
    }
    for (o = 0; o < n; ++o) {
        const float s = (float)t->whole[o] * (factor[o] * r->step) + bias[o];
        y[o * y_apart] = l->relu && s < 0.0f ? 0.0f : s;
    }
}

static void linear(const weights *l, unsigned rows, const float *x, size_t x_apart, float *y,
                   size_t y_apart, list *t)
{
    unsigned i;
    for (; rows > 0; --rows, x += x_apart, y += y_apart) {
        const rounding r = rounding_of(x, l->inputs, l->levels);
        to_bytes(l, &r, x, 1, l->inputs, 0, 1, t);
        for (i = l->inputs; i % 4 != 0; ++i) {
            t->byte[i] = 0;
            if (l->levels > 0) {
                t->low[i] = 0;
            }
        }
        add_up(l, 0, &r, 0, y, 1, t);
    }
}

#if CONVOLVED
/* The columns of a plane that places of the kernel in one row read, zeros around among them, become
   bytes; each is filled up to fours. */
static void column_bytes(const weights *l, const plane *p, const rounding *r, int32_t top,
                         unsigned reach, const float *x, list *t)
{
    const unsigned deep = l->inputs / p->kernel_width, filled = (deep + 3) / 4 * 4;
    const unsigned channels = deep / p->kernel_height;
    const unsigned end = reach < p->before ? 0 : reach - p->before;
    const unsigned width = end < p->width ? end : p->width;
    unsigned i, c;
    for (i = 0; i < reach * filled; ++i) {
        t->byte[i] = (uint8_t)(l->levels > 0 ? r->offset >> 8 : r->offset);
        if (l->levels > 0) {
            t->low[i] = (uint8_t)(r->offset & 255);
        }
    }
    for (i = 0; i < p->kernel_height; ++i) {
        const int32_t row = top + (int32_t)(i * p->dilated_down);
        if (row < 0 || row >= p->height) {
            continue;
        }
        for (c = 0; c < channels; ++c) {
            to_bytes(l, r, x + ((size_t)c * p->height + (size_t)row) * p->width, 1, width,
                     (size_t)p->before * filled + i * channels + c, filled, t);
        }
    }
}

/* Moves the columns that a place reads next to each other, behind all of them. */
static void gather_taps(const weights *l, const plane *p, size_t from, size_t to, unsigned filled,
                        list *t)
{
    unsigned k, i;
    for (k = 0; k < p->kernel_width; ++k, from += (size_t)p->dilated_across * filled) {
        for (i = 0; i < filled; ++i, ++to) {
            t->byte[to] = t->byte[from + i];
            if (l->levels > 0) {
                t->low[to] = t->low[from + i];
            }
        }
    }
}

static void convolve_one(const weights *l, const plane *p, const float *x, float *y, list *t)
{
    const size_t from = (size_t)p->height * p->width, to = (size_t)p->to_height * p->to_width;
    const unsigned channels = l->inputs / (p->kernel_height * p->kernel_width);
    const unsigned filled = (channels * p->kernel_height + 3) / 4 * 4;
    const unsigned reach =
        (p->to_width - 1u) * p->across + (p->kernel_width - 1u) * p->dilated_across + 1u;
    const rounding r = rounding_of(x, p->groups * channels * from, l->levels);
    unsigned g, i, j;
    for (g = 0; g < p->groups; ++g, x += channels * from, y += l->whole.outputs * to) {
        for (i = 0; i < p->to_height; ++i) {
            column_bytes(l, p, &r, (int32_t)(i * p->down) - p->above, reach, x, t);
            for (j = 0; j < p->to_width; ++j) {
                size_t at = (size_t)j * p->across * filled;
                if (p->dilated_across > 1) {
                    gather_taps(l, p, at, (size_t)reach * filled, filled, t);
                    at = (size_t)reach * filled;
                }
                add_up(l, g, &r, at, y + (size_t)i * p->to_width + j, to, t);
            }
        }
    }
}

static void convolve(const weights *l, const plane *p, unsigned rows, const float *x,
                     size_t x_apart, float *y, size_t y_apart, list *t)
{
    for (; rows > 0; --rows, x += x_apart, y += y_apart) {
        convolve_one(l, p, x, y, t);
    }
}
#endif
