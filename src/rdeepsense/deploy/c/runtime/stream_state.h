/* A model of windows in a stream, one interval after the other: MODEL_INTERVAL times of all
   channels. Both states are yours; they are small, and the model itself is not copied. Where the
   last MODEL_INTERVALS intervals hold something that predict would tell of a window, they tell it
   too. Before so many have come, and after begin, the status has MODEL_NOT_ENOUGH_DATA, and every
   output is NaN. */
#define MODEL_NOT_ENOUGH_DATA 64

/* The window that ends with the last interval: exactly what predict says of it. What was computed
   of intervals before is kept, all but the recurrent layers. */
typedef struct {
    float found[MODEL_INTERVALS][MODEL_FOUND];
#if NOVELTY
    float summary[MODEL_INTERVALS][MODEL_CHANNELS][MODEL_SUMMARY];
#endif
    uint8_t status[MODEL_INTERVALS];
    uint32_t seen;
} model_window;

void model_begin_window(model_window *state);
#if CLASSES
int model_push_interval(model_window *state, const float *x, float *probs, void *scratch);
#else
int model_push_interval(model_window *state, const float *x, float *mean, float *std,
                        void *scratch);
#endif

/* Recurrent layers go on from interval to interval, which costs least. That is another function
   than the trained one, with a calibration of its own: see report.json. */
typedef struct {
    float states[MODEL_STATES];
    float top[MODEL_TOPS][MODEL_TOP];
#if NOVELTY
    float summary[MODEL_INTERVALS][MODEL_CHANNELS][MODEL_SUMMARY];
#endif
    uint8_t status[MODEL_INTERVALS];
    uint32_t seen;
} model_running;

void model_begin_run(model_running *state);
#if CLASSES
int model_run_interval(model_running *state, const float *x, float *probs, void *scratch);
#else
int model_run_interval(model_running *state, const float *x, float *mean, float *std,
                       void *scratch);
#endif
