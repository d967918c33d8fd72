/* Steps without products: numbers that are scaled, averaged, added, moved. */

#if NORMED
static void affine(const float *scale, const float *shift, unsigned channels, unsigned each,
                   int relu, const float *x, float *y)
{
    unsigned c, i;
    for (c = 0; c < channels; ++c) {
        for (i = 0; i < each; ++i) {
            const float s = *x++ * scale[c] + shift[c];
            *y++ = relu && s < 0.0f ? 0.0f : s;
        }
    }
}
#endif

#if USES_RELU
static void rectify(unsigned n, const float *x, float *y)
{
    unsigned i;
    for (i = 0; i < n; ++i) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
#endif

#if USES_SIGMOID
static void sigmoids(unsigned n, const float *x, float *y)
{
    unsigned i;
    for (i = 0; i < n; ++i) {
        y[i] = sigmoid_of(x[i]);
    }
}
#endif

#if USES_TANH
static void tangents(unsigned n, const float *x, float *y)
{
    unsigned i;
    for (i = 0; i < n; ++i) {
        y[i] = tanh_of(x[i]);
    }
}
#endif

#if ADDED
static void add(unsigned n, const float *x, const float *other, float *y)
{
    unsigned i;
    for (i = 0; i < n; ++i) {
        y[i] = x[i] + other[i];
    }
}
#endif

#if AVERAGED
/* Means of count numbers that lie inner apart. */
static void average(unsigned outer, unsigned count, unsigned inner, const float *x, float *y)
{
    unsigned o, i, k;
    for (o = 0; o < outer; ++o, x += (size_t)count * inner, y += inner) {
        for (i = 0; i < inner; ++i) {
            y[i] = 0.0f;
        }
        for (k = 0; k < count; ++k) {
            for (i = 0; i < inner; ++i) {
                y[i] += x[(size_t)k * inner + i];
            }
        }
        for (i = 0; i < inner; ++i) {
            y[i] /= (float)count;
        }
    }
}
#endif

#if COPIED
static void copy(unsigned n, const float *x, float *y)
{
    unsigned i;
    for (i = 0; i < n; ++i) {
        y[i] = x[i];
    }
}
#endif

#if MOVED
/* Four axes: how long each is, and how far apart its numbers lie. */
static void move(const int32_t *size, const int32_t *stride, const float *x, float *y)
{
    int32_t i, j, k, l;
    for (i = 0; i < size[0]; ++i) {
        for (j = 0; j < size[1]; ++j) {
            for (k = 0; k < size[2]; ++k) {
                const float *from = x + (i * stride[0] + j * stride[1] + k * stride[2]);
                for (l = 0; l < size[3]; ++l) {
                    *y++ = from[l * stride[3]];
                }
            }
        }
    }
}
#endif

#if POOLED
/* The maximum or the mean over each place of a kernel: height, width, those that come out, the
   kernel's, strides. */
static void pool(const uint16_t *p, unsigned channels, int mean, const float *x, float *y)
{
    unsigned c, i, j, k, l;
    for (c = 0; c < channels; ++c, x += (size_t)p[0] * p[1]) {
        for (i = 0; i < p[2]; ++i) {
            for (j = 0; j < p[3]; ++j) {
                const float *from = x + (size_t)(i * p[6]) * p[1] + j * p[7];
                float most = from[0], sum = 0.0f;
                for (k = 0; k < p[4]; ++k) {
                    for (l = 0; l < p[5]; ++l) {
                        const float one = from[(size_t)k * p[1] + l];
                        most = one > most ? one : most;
                        sum += one;
                    }
                }
                *y++ = mean ? sum / (float)(p[4] * p[5]) : most;
            }
        }
    }
}
#endif
