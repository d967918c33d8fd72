/* What the labels of one person or sensor leave of the variance, by output: it narrows along some
   directions of the outputs, with the covariance of each. */

static void narrow(const work *w, float *kept)
{
    float psi[NARROW_SIZE];
    unsigned j, k;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        kept[k] = 1.0f;
    }
    for (j = 0; j < NARROW_COUNT; ++j) {
        float taken;
        turn(w, model_narrow_turned + (size_t)j * NARROW_TURNED, NARROW_SIZE, psi);
        taken =
            1.0f - left_open(model_narrow_left + (size_t)j * (NARROW_SIZE * (NARROW_SIZE + 1) / 2),
                             NARROW_SIZE, psi);
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            kept[k] -= model_narrow_shares[k * NARROW_COUNT + j] * taken;
        }
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        kept[k] = kept[k] < NARROW_LEAST ? NARROW_LEAST : kept[k];
    }
}
