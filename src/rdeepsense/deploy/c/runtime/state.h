/* All that is learnt from labels. It is yours: keep it in RAM; seal it, store it as it is, check
   what you read, and go on. */
typedef struct {
    float covariance[MODEL_FILTERS][MODEL_DIRECTIONS * (MODEL_DIRECTIONS + 1) / 2];
    float weights[MODEL_FILTERS][MODEL_OUTPUTS][MODEL_DIRECTIONS];
    float trust[MODEL_FILTERS + 1][MODEL_STRETCHES]; /* in the model as it is, and in each filter */
    float log_q[MODEL_OUTPUTS];                      /* what intervals are stretched by */
    uint32_t rows, labels;                           /* that came */
    uint32_t magic, model, sum;                      /* what model_seal says of all before */
} model_state;

/* A row that waits for its label, which may come late or never. */
typedef struct {
    float psi[MODEL_DIRECTIONS];
    float mean[MODEL_OUTPUTS], std[MODEL_OUTPUTS]; /* without what was learnt since the training */
    float shift[MODEL_FILTERS][MODEL_OUTPUTS], share[MODEL_FILTERS]; /* what each filter said */
    float low[MODEL_OUTPUTS], high[MODEL_OUTPUTS];
} model_row;

/* What observe and check return beside MODEL_OK; nothing is learnt then. */
#define MODEL_BAD_LABEL 1 /* a label is NaN or infinite */
#define MODEL_BAD_ROW 2   /* the row had no prediction */
#define MODEL_FAR_LABEL 3 /* a label is absurd: 100 standard deviations off, and more */
#define MODEL_BAD_STATE 4 /* not sealed, of another model, damaged, or no number that it may be */

/* The state before any label. */
void model_begin(model_state *state);

/* Marks a state as whole and as this model's, before it is stored. */
void model_seal(model_state *state);

/* Tells whether a state that was read is sealed, of this model, and of numbers that labels may lead
   to; begin anew where it is not. */
int model_check(const model_state *state);

/* Predicts as predict does, with what was learnt, and the interval that is tracked. Keep row until
   its label comes. */
int model_live(model_state *state, const float *x, model_row *row, float *mean, float *std,
               float *low, float *high, void *scratch);

/* Learns from the label of a row, MODEL_OUTPUTS numbers in the target's units. */
int model_observe(model_state *state, const model_row *row, const float *y);
