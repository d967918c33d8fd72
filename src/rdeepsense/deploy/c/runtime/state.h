/* All that is learnt from labels. It is yours: keep it in RAM, store it as it is, and go on. */
typedef struct {
    float covariance[MODEL_FILTERS][MODEL_DIRECTIONS * (MODEL_DIRECTIONS + 1) / 2];
    float weights[MODEL_FILTERS][MODEL_OUTPUTS][MODEL_DIRECTIONS];
    float trust[MODEL_FILTERS + 1][MODEL_STRETCHES]; /* in the model as it is, and in each filter */
    float log_q[MODEL_OUTPUTS];                      /* what intervals are stretched by */
    uint32_t rows, labels;                           /* that came */
} model_state;

/* A row that waits for its label, which may come late or never. */
typedef struct {
    float psi[MODEL_DIRECTIONS];
    float mean[MODEL_OUTPUTS], std[MODEL_OUTPUTS]; /* without what was learnt since the training */
    float shift[MODEL_FILTERS][MODEL_OUTPUTS], share[MODEL_FILTERS]; /* what each filter said */
    float low[MODEL_OUTPUTS], high[MODEL_OUTPUTS];
} model_row;

/* What observe returns beside MODEL_OK; nothing is learnt then. */
#define MODEL_BAD_LABEL 1 /* a label is NaN or infinite */
#define MODEL_BAD_ROW 2   /* the row had no prediction */
#define MODEL_FAR_LABEL 3 /* a label is absurd: 100 standard deviations off, and more */

/* The state before any label. */
void model_begin(model_state *state);

/* Predicts as predict does, with what was learnt, and the interval that is tracked. Keep row until
   its label comes. */
int model_live(model_state *state, const float *x, model_row *row, float *mean, float *std,
               float *low, float *high, void *scratch);

/* Learns from the label of a row, MODEL_OUTPUTS numbers in the target's units. */
int model_observe(model_state *state, const model_row *row, const float *y);
