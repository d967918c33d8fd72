/* A model of windows in a stream. */

/* Notes the status of an interval; those that have left the window are forgotten. */
static void noted(uint8_t *status, uint32_t *seen, int now)
{
    unsigned t;
    for (t = 0; t + 1 < MODEL_INTERVALS; ++t) {
        status[t] = status[t + 1];
    }
    status[MODEL_INTERVALS - 1] = (uint8_t)now;
    *seen += *seen < MODEL_INTERVALS;
}

/* The status of the last intervals together. */
static int all_noted(const uint8_t *status)
{
    int all = MODEL_OK;
    unsigned t;
    for (t = 0; t < MODEL_INTERVALS; ++t) {
        all |= status[t];
    }
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

/* Keeps what is computed of an interval. */
static void keep_interval(model_window *state, const float *x, work *w)
{
    unsigned t, i;
    for (t = 0; t + 1 < MODEL_INTERVALS; ++t) {
        for (i = 0; i < FOUND; ++i) {
            state->found[t][i] = state->found[t + 1][i];
        }
    }
    noted(state->status, &state->seen, interval(x, state->found[MODEL_INTERVALS - 1], w));
#if NOVELTY
    note(x, state->summary);
#endif
}

static int finish_window(model_window *state, RESULTS, work *w)
{
    int status = all_noted(state->status);
    unsigned t;
    if (state->seen < MODEL_INTERVALS) {
        return status | unready(WRITTEN);
    }
    forget(w->states);
    for (t = 0; t < MODEL_INTERVALS; t += some_of(t)) {
        proceed(state->found[t], some_of(t), t, w);
    }
    columns(w);
    status = finish(status, w, WRITTEN);
#if NOVELTY
    status |= unlike(status, noted_surprise(state->summary), JUDGED);
#endif
#if REFUSES
    status |= unsure(JUDGED);
#endif
    return status;
}

int model_push_interval(model_window *state, const float *x, RESULTS, void *scratch)
{
    keep_interval(state, x, scratch);
    return finish_window(state, WRITTEN, scratch);
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

/* Goes on by an interval. */
static void carry_interval(model_running *state, const float *x, work *w)
{
    unsigned t, k;
    noted(state->status, &state->seen, interval(x, w->found, w));
#if NOVELTY
    note(x, state->summary);
#endif
    for (t = 0; t + 1 < MODEL_TOPS; ++t) {
        for (k = 0; k < TOP; ++k) {
            state->top[t][k] = state->top[t + 1][k];
        }
    }
    recurrent_steps(1, w->found, state->top[MODEL_TOPS - 1], state->states, w);
}

static int finish_run(model_running *state, RESULTS, work *w)
{
    int status = all_noted(state->status);
    unsigned t, k;
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
    status |= unlike(status, noted_surprise(state->summary), JUDGED);
#endif
#if REFUSES
    status |= unsure(JUDGED);
#endif
    return status;
}

int model_run_interval(model_running *state, const float *x, RESULTS, void *scratch)
{
    carry_interval(state, x, scratch);
    return finish_run(state, WRITTEN, scratch);
}
