/* When a window is due, and what is said of it. */

#if STEPWISE
static void begin_windows(model_stream *stream)
{
    stream->until = MODEL_INTERVALS;
#if STEPWISE_EXACT
    model_begin_window(&stream->window);
#else
    model_begin_run(&stream->running);
#endif
}

/* Takes in the intervals before the next window's end; tells whether that is reached. */
static int is_due(model_stream *stream, void *scratch)
{
    while (stream->until > 0 && complete(stream) >= MODEL_INTERVAL) {
#if STEPWISE_EXACT
        keep_interval(&stream->window, stream->points[0], scratch);
#else
        carry_interval(&stream->running, stream->points[0], scratch);
#endif
        shift(stream, MODEL_INTERVAL);
        --stream->until;
    }
    return stream->until == 0;
}

static void pass(model_stream *stream)
{
    stream->until = MODEL_HOP / MODEL_INTERVAL;
    stream->start = later(stream->start, HOP_WHOLE, HOP_PART);
}
#else
static int is_due(model_stream *stream, void *scratch)
{
    (void)scratch;
    return complete(stream) >= MODEL_SAMPLES;
}

static void pass(model_stream *stream)
{
    shift(stream, MODEL_HOP);
    stream->start = later(stream->start, HOP_WHOLE, HOP_PART);
}
#endif

#if CLASSES
static const float prior[MODEL_OUTPUTS] = {PRIOR_TABLE}; /* of the classes */

static void begin_belief(model_stream *stream)
{
    unsigned k;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        stream->belief[k] = prior[k];
    }
    stream->label = -1;
}

/* Between two windows the class stays, or with the probability CHANGE is drawn anew; then a window
   counts as EVIDENCE of an independent one. */
static void believe(model_stream *stream, const float *probs, int is_evidence)
{
    float logs[MODEL_OUTPUTS], most = 0.0f, total = 0.0f;
    unsigned k;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        stream->belief[k] += CHANGE * (prior[k] - stream->belief[k]);
    }
    if (!is_evidence) {
        return;
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        const float p = probs[k] > LEAST_PROB ? probs[k] : LEAST_PROB;
        logs[k] = log_of(stream->belief[k]) + EVIDENCE * (log_of(p) - log_of(prior[k]));
        most = k == 0 || logs[k] > most ? logs[k] : most;
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        stream->belief[k] = exp_of_minus(logs[k] - most);
        total += stream->belief[k];
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        stream->belief[k] /= total;
    }
}

/* A label comes where it is right with the probability MODEL_CHANGE_AT, and goes where it is wrong
   with that. */
static void label(model_stream *stream, model_decision *decision)
{
    unsigned k, best = 0;
    for (k = 1; k < MODEL_OUTPUTS; ++k) {
        best = stream->belief[k] > stream->belief[best] ? k : best;
    }
    if (stream->belief[best] >= MODEL_CHANGE_AT) {
        stream->label = (int32_t)best;
    } else if (stream->label >= 0 && stream->belief[stream->label] < 1.0f - MODEL_CHANGE_AT) {
        stream->label = -1;
    }
    decision->label = stream->label;
    decision->probability = stream->belief[stream->label < 0 ? best : (unsigned)stream->label];
}

#define DECIDED decision->probs
#else
static const float low_90[MODEL_OUTPUTS] = {LOW_TABLE}, high_90[MODEL_OUTPUTS] = {HIGH_TABLE};

#define DECIDED decision->mean, decision->std
#endif

/* What is said of the window that is due. */
static void conclude(model_stream *stream, model_decision *decision, void *scratch)
{
#if !CLASSES
    unsigned k;
#endif
    decision->start = rounded(stream->start);
    decision->end = rounded(later(stream->start, SPAN_WHOLE, SPAN_PART));
#if STEPWISE_EXACT
    decision->status = finish_window(&stream->window, DECIDED, scratch);
#elif STEPWISE
    decision->status = finish_run(&stream->running, DECIDED, scratch);
#else
    decision->status = model_predict(stream->points[0], DECIDED, scratch);
#endif
#if CLASSES
    believe(stream, decision->probs, (decision->status & ~TRUSTED) == MODEL_OK);
    label(stream, decision);
#else
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        decision->low[k] = decision->mean[k] + low_90[k] * decision->std[k];
        decision->high[k] = decision->mean[k] + high_90[k] * decision->std[k];
    }
#endif
}

/* What is said where windows begin anew. */
static void announce(const model_stream *stream, model_decision *decision)
{
    word nan;
    unsigned k;
    nan.bits = 0x7fc00000u;
    decision->start = decision->end = rounded(stream->start);
    decision->status = MODEL_NOT_ENOUGH_DATA;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
#if CLASSES
        decision->probs[k] = nan.value;
#else
        decision->mean[k] = decision->std[k] = nan.value;
        decision->low[k] = decision->high[k] = nan.value;
#endif
    }
#if CLASSES
    decision->label = -1;
    decision->probability = nan.value;
#endif
}

int model_decide(model_stream *stream, model_decision *decision, void *scratch)
{
    if (stream->announces) {
        announce(stream, decision);
        stream->announces = 0;
        return 1;
    }
    if (!is_due(stream, scratch)) {
        return 0;
    }
    conclude(stream, decision, scratch);
    pass(stream);
    stream->announced = 0;
    return 1;
}
