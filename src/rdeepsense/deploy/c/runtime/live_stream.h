/* As model_live, of the window that ends with this interval; NaN before there is one. What runs on
   from interval to interval does not learn: its last layer reads other numbers than the trained
   one. */
int model_live_interval(model_state *state, model_window *window, const float *x, model_row *row,
                        float *mean, float *std, float *low, float *high, void *scratch);
