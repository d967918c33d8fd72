/* A stream of intervals that learns on. */

int model_live_interval(model_state *state, model_window *window, const float *x, model_row *row,
                        float *mean, float *std, float *low, float *high, void *scratch)
{
    const int status = model_push_interval(window, x, row->mean, row->std, scratch);
    return answer(status, state, row, mean, std, low, high, scratch);
}
