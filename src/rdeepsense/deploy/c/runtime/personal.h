/* What one user's labels have taught, at the beginning of the scratch, which must therefore be
   zero at first and be kept. The caller computes the change, from what the last layer read and said
   of windows whose class is known. */
typedef struct {
    float change[MODEL_OUTPUTS][MODEL_TOP + 1]; /* added to the last layer's weights and bias */
    float read[MODEL_TOP];                      /* by the last layer, of the last window */
    float logits[MODEL_OUTPUTS];                /* what it said of that, without the change */
} model_personal;
