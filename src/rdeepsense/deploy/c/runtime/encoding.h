/* What the network reads of a row: its numbers, flags of those that are missing, and the vectors
   that stand for the levels of categories. */

#if CODED
/* The row of a category's table: the level's own, or that of other levels, or of missing ones. */
static uint32_t level_row(float code, uint32_t levels)
{
    if (size_of(code) > INFINITE) {
        return levels + 1;
    }
    if (code >= 0.0f && code < (float)levels && (float)(uint32_t)code == code) {
        return (uint32_t)code;
    }
    return levels;
}
#endif

static void encode(const float *restrict x, float *restrict to)
{
    unsigned i;
#if CODED
    const float *table = model_vectors;
#endif
#if NUMBERED
    for (i = 0; i < NUMBERS; ++i) {
        *to++ = x[model_numbers[i]];
    }
#endif
#if FLAGGED
    for (i = 0; i < FLAGS; ++i) {
        *to++ = size_of(x[model_flags[i]]) > INFINITE ? 1.0f : 0.0f;
    }
#endif
#if CODED
    for (i = 0; i < CATEGORIES; ++i) {
        const uint32_t levels = (uint32_t)model_category_levels[i];
        const uint32_t width = (uint32_t)model_category_width[i];
        const float *vector = table + (size_t)level_row(x[model_categories[i]], levels) * width;
        uint32_t k;
        for (k = 0; k < width; ++k) {
            *to++ = vector[k];
        }
        table += (size_t)(levels + 2) * width;
    }
#endif
}
