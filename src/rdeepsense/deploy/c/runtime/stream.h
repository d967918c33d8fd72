/* A model of windows in a stream. */

/* The status of the last intervals together, with that of a new one; old ones are forgotten. */
static int noted(uint8_t *status, uint32_t *seen, int now)
{
    int all = now;
    unsigned t;
    for (t = 0; t + 1 < MODEL_INTERVALS; ++t) {
        status[t] = status[t + 1];
        all |= status[t];
    }
    status[MODEL_INTERVALS - 1] = (uint8_t)now;
    *seen += *seen < MODEL_INTERVALS;
    return told(all);
}

#if CLASSES
#define RESULTS float *probs
#define WRITTEN probs
#define JUDGED probs
#else
#define RESULTS float *mean, float *std
#define WRITTEN mean, std
#define JUDGED std
#endif

static int unready(RESULTS)
{
    word nan;
    unsigned k;
    nan.bits = 0x7fc00000u;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
#if CLASSES
        probs[k] = nan.value;
#else
        mean[k] = std[k] = nan.value;
#endif
    }
    return MODEL_NOT_ENOUGH_DATA;
}

void model_begin_window(model_window *state)
{
    unsigned t;
    state->seen = 0;
    for (t = 0; t < MODEL_INTERVALS; ++t) {
        state->status[t] = MODEL_OK;
    }
}

int model_push_interval(model_window *state, const float *x, RESULTS, void *scratch)
{
    work *w = scratch;
    int status;
    unsigned t, i;
    for (t = 0; t + 1 < MODEL_INTERVALS; ++t) {
        for (i = 0; i < FOUND; ++i) {
            state->found[t][i] = state->found[t + 1][i];
        }
    }
#if NOVELTY
    note(x, state->summary);
#endif
    status = noted(state->status, &state->seen, interval(x, state->found[MODEL_INTERVALS - 1], w));
    if (state->seen < MODEL_INTERVALS) {
        return status | unready(WRITTEN);
    }
    forget(w->states);
    for (t = 0; t < MODEL_INTERVALS; ++t) {
        recurrent_steps(state->found[t], w->top, w->states, w);
        gather(w->top, t == 0, w);
    }
    columns(w);
    status = finish(status, w, WRITTEN);
#if NOVELTY
    status |= unlike(status, noted_surprise(state->summary));
#endif
#if REFUSES
    status |= unsure(status, JUDGED);
#endif
    return status;
}

void model_begin_run(model_running *state)
{
    unsigned t;
    state->seen = 0;
    forget(state->states);
    for (t = 0; t < MODEL_INTERVALS; ++t) {
        state->status[t] = MODEL_OK;
    }
}

int model_run_interval(model_running *state, const float *x, RESULTS, void *scratch)
{
    work *w = scratch;
    int status = noted(state->status, &state->seen, interval(x, w->found, w));
    unsigned t, k;
#if NOVELTY
    note(x, state->summary);
#endif
    for (t = 0; t + 1 < MODEL_TOPS; ++t) {
        for (k = 0; k < TOP; ++k) {
            state->top[t][k] = state->top[t + 1][k];
        }
    }
    recurrent_steps(w->found, state->top[MODEL_TOPS - 1], state->states, w);
    if (state->seen < MODEL_INTERVALS) {
        return status | unready(WRITTEN);
    }
    for (t = 0; t < MODEL_TOPS; ++t) {
        gather(state->top[t], t == 0, w);
    }
    columns(w);
#if CLASSES
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        w->raw[k] *= RUNNING_FACTOR;
    }
#endif
    status = finish(status, w, WRITTEN);
#if !CLASSES
    for (k = 0; k < MODEL_OUTPUTS && status == MODEL_OK; ++k) {
        std[k] *= RUNNING_FACTOR;
    }
#endif
#if NOVELTY
    status |= unlike(status, noted_surprise(state->summary));
#endif
#if REFUSES
    status |= unsure(status, JUDGED);
#endif
    return status;
}
