/* Windows by five numbers of each channel: mean, standard deviation, least, greatest, standard
   deviation of the steps. What is kept of an interval is joined with that of others, so that a
   stream gives what its window gives. */
#define TIMES (READ / CHANNELS) /* of an interval */

enum { MEAN, SQUARES, LEAST, GREATEST, STEPS, FIRST, LATEST };

/* Of a channel of an interval: its mean above the first reading, squares about the mean, ends,
   squares of steps between neighbours, first and latest reading. All sums are of differences, so
   that a stuck channel has none, and a large offset costs no digits. */
static void summarise(const float *x, unsigned c, float *s)
{
    const float first = entered(x[c], c);
    float sum = 0.0f, before = first;
    unsigned t;
    s[FIRST] = s[LEAST] = s[GREATEST] = first;
    s[SQUARES] = s[STEPS] = 0.0f;
    for (t = 1; t < TIMES; ++t) {
        const float now = entered(x[(size_t)t * CHANNELS + c], c);
        s[LEAST] = now < s[LEAST] ? now : s[LEAST];
        s[GREATEST] = now > s[GREATEST] ? now : s[GREATEST];
        s[STEPS] += (now - before) * (now - before);
        sum += now - first;
        before = now;
    }
    s[LATEST] = before;
    s[MEAN] = sum / (float)TIMES;
    for (t = 0; t < TIMES; ++t) {
        const float away = entered(x[(size_t)t * CHANNELS + c], c) - first - s[MEAN];
        s[SQUARES] += away * away;
    }
}

/* Takes a later interval of a channel to `count` of them. */
static void join(float *all, const float *s, unsigned count)
{
    const float apart = s[FIRST] - all[FIRST] + s[MEAN] - all[MEAN];
    const float step = s[FIRST] - all[LATEST];
    const float share = 1.0f / (float)(count + 1);
    all[SQUARES] += s[SQUARES] + apart * apart * (float)(TIMES * count) * share;
    all[MEAN] += apart * share;
    all[STEPS] += s[STEPS] + step * step;
    all[LEAST] = s[LEAST] < all[LEAST] ? s[LEAST] : all[LEAST];
    all[GREATEST] = s[GREATEST] > all[GREATEST] ? s[GREATEST] : all[GREATEST];
    all[LATEST] = s[LATEST];
}

/* Of a square that may be 0. */
static float deviation(float square)
{
    return square > 1e-30f ? root(square) : 0.0f;
}

/* Adds the five numbers of a channel of a window. */
static void add_channel(unsigned c, const float *all, float *h)
{
    const float times = (float)(MODEL_INPUTS / CHANNELS);
    const float drift = (all[LATEST] - all[FIRST]) / times;
    add_column(c, all[FIRST], all[MEAN], h);
    add_column(CHANNELS + c, deviation(all[SQUARES] / times), 0.0f, h);
    add_column(2 * CHANNELS + c, all[LEAST], 0.0f, h);
    add_column(3 * CHANNELS + c, all[GREATEST], 0.0f, h);
    add_column(4 * CHANNELS + c, deviation(all[STEPS] / times - drift * drift), 0.0f, h);
}

float model_surprise(const float *x)
{
    float h[COMPONENTS] = {0.0f}, all[MODEL_SUMMARY], next[MODEL_SUMMARY];
    unsigned c, t;
    for (c = 0; c < CHANNELS; ++c) {
        summarise(x, c, all);
        for (t = 1; t < MODEL_INPUTS / READ; ++t) {
            summarise(x + (size_t)t * READ, c, next);
            join(all, next, t);
        }
        add_channel(c, all, h);
    }
    return least_surprise(h);
}

#if STREAMS
/* What is kept of an interval, in the last of the places of a window. */
static void note(const float *x, float (*kept)[MODEL_CHANNELS][MODEL_SUMMARY])
{
    unsigned c, t, i;
    for (t = 0; t + 1 < MODEL_INTERVALS; ++t) {
        for (c = 0; c < CHANNELS; ++c) {
            for (i = 0; i < MODEL_SUMMARY; ++i) {
                kept[t][c][i] = kept[t + 1][c][i];
            }
        }
    }
    for (c = 0; c < CHANNELS; ++c) {
        summarise(x, c, kept[MODEL_INTERVALS - 1][c]);
    }
}

/* The surprise of the last window, to the bit. */
static float noted_surprise(float (*kept)[MODEL_CHANNELS][MODEL_SUMMARY])
{
    float h[COMPONENTS] = {0.0f}, all[MODEL_SUMMARY];
    unsigned c, t, i;
    for (c = 0; c < CHANNELS; ++c) {
        for (i = 0; i < MODEL_SUMMARY; ++i) {
            all[i] = kept[0][c][i];
        }
        for (t = 1; t < MODEL_INTERVALS; ++t) {
            join(all, kept[t][c], t);
        }
        add_channel(c, all, h);
    }
    return least_surprise(h);
}
#endif
