/* A stream of samples from its begin on. */

void model_begin_stream(model_stream *stream)
{
    unsigned s;
    for (s = 0; s < MODEL_SENSORS; ++s) {
        stream->known[s] = stream->used[s] = 0;
        stream->filled[s] = 0;
    }
    stream->begun = stream->announces = stream->announced = 0;
    stream->behind = stream->late = stream->repeated = stream->lost = 0;
#if STEPWISE
    begin_windows(stream);
#endif
#if CLASSES
    begin_belief(stream);
#endif
}

/* Windows begin anew, with a sample of this time. */
static void restart(model_stream *stream, int64_t time)
{
    unsigned s;
    stream->start.whole = time;
    stream->start.part = 0;
    for (s = 0; s < MODEL_SENSORS; ++s) {
        stream->next[s] = stream->start;
        stream->filled[s] = 0;
    }
    stream->announces |= !stream->announced;
    stream->announced = 1;
#if STEPWISE
    begin_windows(stream);
#endif
#if CLASSES
    begin_belief(stream);
#endif
}

/* Takes a sample of a sensor; where no point of this stretch can be told, it is only kept. */
static void take(model_stream *stream, unsigned s, int64_t time, const float *sample, int fills)
{
    unsigned c;
    if (!stream->known[s]) {
        stream->heard[s] = time;
    }
    stream->used[s] = 0;
    if (fills) {
        fill(stream, s, time, sample);
    }
    for (c = sensors[s]; c < sensors[s + 1]; ++c) {
        stream->last[c] = sample[c];
    }
    stream->heard[s] = time;
    stream->known[s] = 1;
}

/* Whether a time is not before the last one; a clock that was set back begins the stream anew. */
static int is_in_order(model_stream *stream, int64_t time)
{
    unsigned s;
    if (!stream->begun || time >= stream->time) {
        stream->behind = 0;
        return 1;
    }
    ++stream->late;
    if (++stream->behind < MODEL_SAMPLES) {
        return 0;
    }
    stream->behind = 0;
    for (s = 0; s < MODEL_SENSORS; ++s) {
        stream->known[s] = 0;
    }
    return 1;
}

int model_push(model_stream *stream, int64_t microseconds, const float *sample, void *scratch)
{
    int fresh[MODEL_SENSORS], fills = 1, anew = 0, told = MODEL_OK;
    unsigned s;
    if (microseconds > FURTHEST_TIME || microseconds < -FURTHEST_TIME) {
        return MODEL_BAD_TIME;
    }
    if (!is_in_order(stream, microseconds)) {
        return MODEL_LATE;
    }
    while (is_due(stream, scratch)) {
        pass(stream);
        ++stream->lost;
    }
    for (s = 0; s < MODEL_SENSORS; ++s) {
        fresh[s] = is_heard(sample, s);
        if (fresh[s] && stream->known[s] && stream->heard[s] == microseconds && stream->used[s]) {
            fresh[s] = 0;
            told = MODEL_REPEATED;
        }
        if (is_silent(stream, s, microseconds)) {
            anew |= fresh[s];
            fills &= fresh[s];
        }
    }
    stream->repeated += told == MODEL_REPEATED;
    stream->time = microseconds;
    stream->begun = 1;
    if (anew) {
        restart(stream, microseconds);
    }
    for (s = 0; s < MODEL_SENSORS; ++s) {
        if (fresh[s]) {
            take(stream, s, microseconds, sample, fills);
        }
    }
    return told;
}
