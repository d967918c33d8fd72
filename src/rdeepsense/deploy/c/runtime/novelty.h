/* How unlike the training rows an input is: the least surprise of some Gaussians. */

/* One input; one that is NaN counts as its mean. */
static float entered(float x, unsigned i)
{
#if REFUSES_NAN
    (void)i;
#else
    if (size_of(x) > INFINITE) {
        return model_novelty_centre[i];
    }
#endif
    return x > MOST_INPUT ? MOST_INPUT : x < -MOST_INPUT ? -MOST_INPUT : x;
}

/* The mean of standard and normal score of a column; the latter is known at its knots. The number
   is base + rest: differences from large numbers keep their digits. */
static float scored(unsigned column, float base, float rest)
{
    const float x = base + rest;
    const float *line = model_novelty_lines + 4 * column;
    const float *knot = model_novelty_knots + KNOTS * column;
    const int8_t *score = model_novelty_scores + KNOTS * column;
    float t = (base - line[0] + rest) * line[1], n = (float)score[0];
    unsigned j = 0;
    if (x < knot[0]) {
        t += (base - knot[0] + rest) * line[2];
    } else if (x >= knot[KNOTS - 1]) {
        t += (base - knot[KNOTS - 1] + rest) * line[3];
        n = (float)score[KNOTS - 1];
    } else {
        while (j + 2 < KNOTS && knot[j + 1] <= x) {
            ++j;
        }
        n = (float)score[j];
        n += (base - knot[j] + rest) / (knot[j + 1] - knot[j]) * ((float)score[j + 1] - n);
    }
    t += n * SCORE_STEP;
    return t > MOST_SCORE ? MOST_SCORE : t < -MOST_SCORE ? -MOST_SCORE : t;
}

/* Adds what a column is of each component, before their steps. */
static void add_column(unsigned column, float base, float rest, float *restrict h)
{
    const int8_t *axes = model_novelty_axes + COMPONENTS * column;
    const float t = scored(column, base, rest);
    unsigned k;
    for (k = 0; k < COMPONENTS; ++k) {
        h[k] += t * (float)axes[k];
    }
}

/* The surprise of components, by the Gaussian that they surprise least; one that they surprise more
   than another is left as soon as that is sure. */
static float least_surprise(float *restrict h)
{
    const float *size = model_novelty_sizes, *mean = model_novelty_means;
    float least = 0.0f;
    unsigned g, i, k;
    for (k = 0; k < COMPONENTS; ++k) {
        h[k] *= model_novelty_steps[k];
    }
    for (g = 0; g < GAUSSIANS; ++g, size += COMPONENTS, mean += COMPONENTS) {
        const int8_t *byte = model_novelty_bytes + (size_t)g * (COMPONENTS * (COMPONENTS + 1) / 2);
        const float most = 2.0f * (least + model_novelty_levels[g]);
        float squares = 0.0f;
        for (k = 0; k < COMPONENTS && (g == 0 || squares < most); ++k) {
            float sum = 0.0f;
            for (i = 0; i <= k; ++i) {
                sum += h[i] * (float)*byte++;
            }
            sum = sum * size[k] - mean[k];
            squares += sum * sum;
        }
        if (g == 0 || squares < most) {
            least = 0.5f * squares - model_novelty_levels[g];
        }
    }
    return least;
}

#if WINDOWS
#include "described.h"
#else
float model_surprise(const float *x)
{
    float h[COMPONENTS] = {0.0f};
    unsigned i;
    for (i = 0; i < NOVELTY_INPUTS; ++i) {
#if ENCODED
        add_column(i, entered(x[model_numbers[i]], i), 0.0f, h);
#else
        add_column(i, entered(x[i], i), 0.0f, h);
#endif
    }
    return least_surprise(h);
}
#endif

/* Flags a row that is unlike the known ones, of those that no single input gives away. What is
   predicted of it, stds or probabilities, goes towards what is known of the targets, the more the
   further out it is. */
static int unlike(int status, float surprise, float *predicted)
{
#if GUARD
    float doubt = (surprise - MODEL_UNLIKE_ABOVE) * PER_WIDTH;
    unsigned k;
#else
    (void)predicted;
#endif
    if (status != MODEL_OK || !(surprise > MODEL_UNLIKE_ABOVE)) {
        return MODEL_OK;
    }
#if GUARD
    doubt = doubt < 1.0f ? doubt * doubt : 1.0f;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
#if CLASSES
        predicted[k] += 0.5f * doubt * (model_fallback[k] - predicted[k]);
#else
        const float std = predicted[k], wide = model_fallback[k];
        if (std < wide) {
            predicted[k] = doubt < 1.0f ? std * wide / (wide - doubt * (wide - std)) : wide;
        }
#endif
    }
#endif
    return MODEL_UNLIKE;
}
