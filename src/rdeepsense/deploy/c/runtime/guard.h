/* Whether an input is one that the model knows. */

#if WINDOWS
#define RANGE_OF(i) ((i) % CHANNELS) /* all times of a channel share one */
#else
#define RANGE_OF(i) (i)
#endif

/* Without a branch where many inputs can be looked at at once. */
static int input_status(const float *x, unsigned i)
{
    const float low = model_low[RANGE_OF(i)], high = model_high[RANGE_OF(i)];
    int known, missing;
#if CODED
    if (model_levels[i] > 0.0f && size_of(x[i]) <= INFINITE) {
        const uint32_t levels = (uint32_t)model_levels[i];
        return level_row(x[i], levels) < levels ? MODEL_OK : MODEL_UNKNOWN_LEVEL;
    }
#endif
#if !defined(__SSE2__) && !defined(__ARM_NEON)
    if (x[i] >= low && x[i] <= high) {
        return MODEL_OK;
    }
#endif
    known = size_of(x[i]) <= INFINITE; /* by bits: -ffast-math believes that there is no NaN */
    missing = !known;
#if !REFUSES_NAN
    missing &= !model_takes_nan[RANGE_OF(i)];
#endif
    return missing * MODEL_MISSING | (known & ((x[i] < low) | (x[i] > high))) * MODEL_OUT_OF_RANGE;
}

#if NUMBERED || !ENCODED
/* Input i as the network reads it: one out of range is moved to the end of its range. Adds its
   status. */
static float known_input(const float *x, unsigned i, int *status)
{
    const int found = input_status(x, i);
    *status |= found;
    if (found & MODEL_OUT_OF_RANGE) {
        return x[i] > model_high[RANGE_OF(i)] ? model_high[RANGE_OF(i)] : model_low[RANGE_OF(i)];
    }
    return x[i];
}
#endif

unsigned model_flagged_input(const float *x)
{
    unsigned i = 0;
    while (i < MODEL_INPUTS && input_status(x, i) == MODEL_OK) {
        ++i;
    }
    return i;
}
