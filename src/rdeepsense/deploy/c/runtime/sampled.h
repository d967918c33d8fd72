/* Samples of any rate to points at equal steps, each sensor by itself. All times are whole numbers:
   microseconds, and PARTS of one. */

#define FURTHEST_TIME 0x2000000000000000LL

static const uint16_t sensors[MODEL_SENSORS + 1] = {SENSOR_TABLE}; /* first channel of each */

static model_instant later(model_instant from, int64_t whole, uint32_t part)
{
    from.whole += whole;
    from.part += part;
    if (from.part >= MODEL_PARTS) {
        from.part -= MODEL_PARTS;
        ++from.whole;
    }
    return from;
}

static int64_t rounded(model_instant at)
{
    return at.whole + (2 * (uint64_t)at.part >= MODEL_PARTS);
}

/* How far a point lies after a time, in PARTS; NEAR and one more where it is further. */
static int64_t beyond(model_instant point, int64_t time)
{
    const int64_t whole = point.whole - time;
    if (whole > NEAR / MODEL_PARTS) {
        return NEAR + 1;
    }
    if (whole < -(NEAR / MODEL_PARTS) - 1) {
        return -NEAR - 1;
    }
    return whole * MODEL_PARTS + point.part;
}

/* The points that all sensors have told of. */
static int32_t complete(const model_stream *stream)
{
    int32_t least = stream->filled[0];
    unsigned s;
    for (s = 1; s < MODEL_SENSORS; ++s) {
        least = stream->filled[s] < least ? stream->filled[s] : least;
    }
    return least;
}

/* Drops the first points. */
static void shift(model_stream *stream, int32_t count)
{
    int32_t most = 0, from;
    unsigned s, c;
    for (s = 0; s < MODEL_SENSORS; ++s) {
        most = stream->filled[s] > most ? stream->filled[s] : most;
        stream->filled[s] -= count;
    }
    for (from = count; from < most && from < MODEL_POINTS; ++from) {
        for (c = 0; c < MODEL_CHANNELS; ++c) {
            stream->points[from - count][c] = stream->points[from][c];
        }
    }
}

/* Writes the points of a sensor up to a new sample of it. */
static void fill(model_stream *stream, unsigned s, int64_t time, const float *sample)
{
    const int64_t before = stream->heard[s];
    model_instant next = stream->next[s];
    int32_t at = stream->filled[s];
    stream->used[s] = 0;
    while (at < MODEL_POINTS && beyond(next, time) <= NEAR) {
        const int now = beyond(next, time) >= -NEAR, then = beyond(next, before) <= NEAR;
        unsigned c;
        if (at >= 0 && (now || then)) {
            for (c = sensors[s]; c < sensors[s + 1]; ++c) {
                stream->points[at][c] = now ? sample[c] : stream->last[c];
            }
        } else if (at >= 0) {
            const float share = ((float)(next.whole - before) + (float)next.part * PER_PART) /
                                (float)(time - before);
            for (c = sensors[s]; c < sensors[s + 1]; ++c) {
                const float apart = sample[c] - stream->last[c];
                stream->points[at][c] = stream->last[c] + share * apart;
            }
        }
        stream->used[s] = 1;
        next = later(next, STEP_WHOLE, STEP_PART);
        ++at;
    }
    stream->next[s] = next;
    stream->filled[s] = at;
}

static int is_heard(const float *sample, unsigned s)
{
    unsigned c;
    for (c = sensors[s]; c < sensors[s + 1]; ++c) {
        if (size_of(sample[c]) >= INFINITE) {
            return 0;
        }
    }
    return 1;
}

static int is_silent(const model_stream *stream, unsigned s, int64_t time)
{
    return !stream->known[s] || time - stream->heard[s] > MODEL_GAP;
}
