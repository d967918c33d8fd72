/* A stream of intervals that learns on. */

int model_live_interval(model_state *state, model_window *window, const float *x, model_row *row,
                        float *mean, float *std, float *low, float *high, void *scratch)
{
    const int status = model_push_interval(window, x, row->mean, row->std, scratch);
#if REFUSES
    return answer(status, state, row, mean, std, low, high, scratch) |
           (all_noted(window->status) & MODEL_UNSURE);
#else
    return answer(status, state, row, mean, std, low, high, scratch);
#endif
}
