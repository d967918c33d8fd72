/* The frequency response of short intervals: (time, channels) to (channels, terms, intervals). */

#define QUIET 0.5e-3f

static void spectrum(const float *cosines, const float *sines, unsigned interval, unsigned channels,
                     unsigned intervals, const float *x, float *y, list *t)
{
    const unsigned terms = interval / 2 + 1;
    float *restrict real = t->sum, *restrict imaginary = t->sum + terms;
    unsigned c, k, f, s;
    for (c = 0; c < channels; ++c) {
        for (k = 0; k < intervals; ++k) {
            for (f = 0; f < terms; ++f) {
                real[f] = imaginary[f] = 0.0f;
            }
            for (s = 0; s < interval; ++s) {
                const float value = x[((size_t)k * interval + s) * channels + c];
                for (f = 0; f < terms; ++f) {
                    real[f] += value * cosines[s * terms + f];
                    imaginary[f] += value * sines[s * terms + f];
                }
            }
            for (f = 0; f < terms; ++f) {
                const float power = real[f] * real[f] + imaginary[f] * imaginary[f];
                y[((size_t)c * terms + f) * intervals + k] =
                    f == 0 ? real[0] : log_of(root(power + QUIET * QUIET) + QUIET);
            }
        }
    }
}
