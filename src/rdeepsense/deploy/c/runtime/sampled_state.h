/* A stream of samples, one after the other as they come: resampled to MODEL_RATE between their
   neighbours, cut into windows of MODEL_SAMPLES every MODEL_HOP, and decided. A sensor that is
   silent for longer than MODEL_GAP ends the window; the next one begins with the first sample at
   which all sensors are heard again. */
#if !STREAMS
#define MODEL_NOT_ENOUGH_DATA 64
#endif

/* What push returns beside MODEL_OK: why a sample, or part of it, was not taken. */
#define MODEL_LATE 1     /* its time lies before that of the sample before it */
#define MODEL_REPEATED 2 /* a sensor has been heard, and used, at this very time */
#define MODEL_BAD_TIME 4 /* beyond 2^61 microseconds, some 70,000 years */

typedef struct {
    int64_t whole; /* microseconds */
    uint32_t part; /* and so many of MODEL_PARTS of one */
} model_instant;

/* It is yours, and holds numbers alone. */
typedef struct {
    float points[MODEL_POINTS][MODEL_CHANNELS]; /* at equal steps, from `start` on or after it */
    float last[MODEL_CHANNELS];                 /* the latest sample of each sensor */
    int64_t heard[MODEL_SENSORS];               /* its time */
    model_instant next[MODEL_SENSORS];          /* the point that it will tell of next */
    int32_t filled[MODEL_SENSORS];              /* points that it has told of */
    uint8_t known[MODEL_SENSORS], used[MODEL_SENSORS];
    model_instant start; /* of the next window */
    int64_t time;        /* of the latest sample */
    uint32_t behind;     /* late samples in a row */
    uint8_t begun, announces, announced;
#if STEPWISE
    uint32_t until; /* intervals that the next window lacks */
#endif
#if STEPWISE_EXACT
    model_window window;
#elif STEPWISE
    model_running running;
#endif
#if CLASSES
    float belief[MODEL_OUTPUTS]; /* the probability of each class, of all decisions together */
    int32_t label;
#endif
    uint32_t late, repeated; /* samples that were not taken */
    uint32_t lost;           /* windows that nobody asked for in time */
} model_stream;

typedef struct {
    int64_t start, end; /* microseconds: the window's first and last point */
    int status;         /* as predict says; MODEL_NOT_ENOUGH_DATA once when windows begin anew */
#if CLASSES
    float probs[MODEL_OUTPUTS]; /* of this window alone */
    int label;         /* of all windows up to this one; -1: none yet, or none is probable */
    float probability; /* that label is right; without one, of the most probable class */
#else
    float mean[MODEL_OUTPUTS], std[MODEL_OUTPUTS];
    float low[MODEL_OUTPUTS], high[MODEL_OUTPUTS]; /* the interval of 90 % */
#endif
} model_decision;

void model_begin_stream(model_stream *stream);

/* sample: MODEL_CHANNELS values; NaN where there is none now. A sensor counts where it has all of
   its channels. After MODEL_SAMPLES late ones in a row the clock has been set back, and the stream
   begins anew. */
int model_push(model_stream *stream, int64_t microseconds, const float *sample, void *scratch);

/* 1 and a decision while one is due, else 0: after each push,
   while (model_decide(&stream, &decision, scratch)) { ... } */
int model_decide(model_stream *stream, model_decision *decision, void *scratch);
