/* Whether an input is one that the model knows. */

#if WINDOWS
#define RANGE_OF(i) ((i) % CHANNELS) /* all times of a channel share one */
#else
#define RANGE_OF(i) (i)
#endif

static int input_status(const float *x, unsigned i)
{
    if (size_of(x[i]) > INFINITE) {
#if REFUSES_NAN
        return MODEL_MISSING;
#else
        return model_takes_nan[RANGE_OF(i)] ? MODEL_OK : MODEL_MISSING;
#endif
    }
#if CODED
    if (model_levels[i] > 0.0f) {
        const uint32_t levels = (uint32_t)model_levels[i];
        return level_row(x[i], levels) < levels ? MODEL_OK : MODEL_UNKNOWN_LEVEL;
    }
#endif
    return x[i] < model_low[RANGE_OF(i)] || x[i] > model_high[RANGE_OF(i)] ? MODEL_OUT_OF_RANGE
                                                                           : MODEL_OK;
}

unsigned model_flagged_input(const float *x)
{
    unsigned i = 0;
    while (i < MODEL_INPUTS && input_status(x, i) == MODEL_OK) {
        ++i;
    }
    return i;
}
