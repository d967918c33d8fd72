/* Linear layers and convolutions: columns of weights times numbers that are not zero. */

#if BYTES
typedef int8_t stored;
#else
typedef float stored;
#endif

typedef struct {
    const stored *weight; /* input by input; of groups one after the other */
#if BYTES
    const float *factor; /* of each output */
#endif
    const float *bias;
    uint16_t inputs, outputs; /* of a group */
    uint8_t relu;
} weights;

static const weights weighted[] = {WEIGHT_TABLE};

/* Numbers to be multiplied, the inputs that they are, and their sums. */
typedef struct {
    float sum[SUMS];
    float value[ROOM];
#if CONVOLVED
    int32_t held[TAPS];   /* which column of a plane each list is of */
    uint32_t count[TAPS]; /* how many of it are not zero */
#endif
    uint16_t index[ROOM];
} list;

#if !BYTES
#if defined(__GNUC__) && (defined(__SSE2__) || defined(__aarch64__))
#define LANES 8
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define LOADED(p) (*(const lanes *)(p))
#if defined(__FMA__)
#include <immintrin.h>
#define PLUS(sum, v, w) ((lanes)_mm256_fmadd_ps(_mm256_set1_ps(v), (__m256)(w), (__m256)(sum)))
#else
#define PLUS(sum, v, w) ((sum) + (v) * (w))
#endif

/* sum += W value for as many outputs as fill registers, which hold the sums; two columns of W at
   a time, so that no sum waits for another. Returns how many outputs that were. */
static unsigned add_in_lanes(const float *weight, unsigned n, const float *value,
                             const uint16_t *index, unsigned count, float *sum)
{
    unsigned j = 0, c;
    for (; j + 4 * LANES <= n; j += 4 * LANES) {
        lanes a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
        const float *from = weight + j;
        lanes *to = (lanes *)(sum + j);
        for (c = 0; c < count; c += 2) {
            const float *p = from + (size_t)index[c] * n;
            const float *q = from + (size_t)index[c + 1] * n;
            const float v = value[c], u = value[c + 1];
            a0 = PLUS(a0, v, LOADED(p));
            a1 = PLUS(a1, v, LOADED(p + LANES));
            a2 = PLUS(a2, v, LOADED(p + 2 * LANES));
            a3 = PLUS(a3, v, LOADED(p + 3 * LANES));
            b0 = PLUS(b0, u, LOADED(q));
            b1 = PLUS(b1, u, LOADED(q + LANES));
            b2 = PLUS(b2, u, LOADED(q + 2 * LANES));
            b3 = PLUS(b3, u, LOADED(q + 3 * LANES));
        }
        to[0] += a0 + b0;
        to[1] += a1 + b1;
        to[2] += a2 + b2;
        to[3] += a3 + b3;
    }
    for (; j + LANES <= n; j += LANES) {
        lanes a = {0}, b = {0}, d = {0}, e = {0};
        for (c = 0; c < count; c += 4) {
            a = PLUS(a, value[c], LOADED(weight + (size_t)index[c] * n + j));
            b = PLUS(b, value[c + 1], LOADED(weight + (size_t)index[c + 1] * n + j));
            d = PLUS(d, value[c + 2], LOADED(weight + (size_t)index[c + 2] * n + j));
            e = PLUS(e, value[c + 3], LOADED(weight + (size_t)index[c + 3] * n + j));
        }
        *(lanes *)(sum + j) += (a + b) + (d + e);
    }
    return j;
}
#endif
#endif

/* sum += W value, four columns of W at a time; a column has n numbers. */
static void add_products(const stored *weight, unsigned n, const float *restrict value,
                         const uint16_t *restrict index, unsigned count, float *restrict sum)
{
    unsigned first = 0, c, j;
#ifdef LANES
    first = add_in_lanes(weight, n, value, index, count, sum);
#endif
    for (c = 0; c < count && first < n; c += 4) {
        const stored *restrict p = weight + (size_t)index[c] * n;
        const stored *restrict q = weight + (size_t)index[c + 1] * n;
        const stored *restrict r = weight + (size_t)index[c + 2] * n;
        const stored *restrict s = weight + (size_t)index[c + 3] * n;
        const float a = value[c], b = value[c + 1], d = value[c + 2], e = value[c + 3];
        for (j = first; j < n; ++j) {
            sum[j] += (a * p[j] + b * q[j]) + (d * r[j] + e * s[j]);
        }
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
#if BYTES
        const float s = sum[j] * l->factor[first + j] + l->bias[first + j];
#else
        const float s = sum[j] + l->bias[first + j];
#endif
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
    add_products(l->weight, l->outputs, t->value, t->index, count, t->sum);
    end_sums(l, 0, t->sum);
}

static void linear(const weights *l, unsigned rows, const float *x, float *y, list *t)
{
    unsigned r, j;
    for (r = 0; r < rows; ++r, x += l->inputs) {
        add_up(l, x, t);
        for (j = 0; j < l->outputs; ++j) {
            *y++ = t->sum[j];
        }
    }
}

#if CONVOLVED
typedef struct {
    uint16_t height, width, to_height, to_width;          /* of a channel, before and after */
    uint16_t kernel_height, kernel_width, down, across;   /* strides */
    uint16_t above, before, dilated_down, dilated_across; /* zeros around; between taps */
    uint16_t groups;
} plane;

static const plane planes[] = {PLANE_TABLE};

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
    const stored *weight = l->weight + (size_t)group * n * l->inputs;
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
            add_products(weight + (size_t)k * deep * n, n, value, index, t->count[slot], t->sum);
        }
        end_sums(l, group * n, t->sum);
        for (k = 0; k < n; ++k) {
            y[k * to + j] = t->sum[k];
        }
    }
}

static void convolve(const weights *l, const plane *p, const float *x, float *y, list *t)
{
    const size_t from = (size_t)p->height * p->width, to = (size_t)p->to_height * p->to_width;
    const unsigned channels = l->inputs / (p->kernel_height * p->kernel_width);
    unsigned g, i;
    for (g = 0; g < p->groups; ++g, x += channels * from, y += l->outputs * to) {
        for (i = 0; i < p->to_height; ++i) {
            convolve_row(l, p, g, i, x, y + (size_t)i * p->to_width, t);
        }
    }
}
#endif
