#ifndef MODEL_H
#define MODEL_H

#include "switches.h"

#if LIVE || STREAMS || SAMPLED
#include <stdint.h>

#endif
#ifdef __cplusplus
extern "C" {
#endif

#include "sizes.h"

#if GUARD && CLASSES
/* What predict returns; flags combine. Where an input is flagged, the probabilities are the mean
   of those of the network and the frequencies of the training rows. */
#elif GUARD
/* What predict returns; flags combine. Where an input is flagged, mean is still that of the
   network, and std at least that of the training targets. */
#else
/* What predict returns; flags combine. */
#endif
#define MODEL_OK 0
#if REFUSES_NAN
#define MODEL_MISSING 1 /* an input is NaN, and so is every output */
#else
#define MODEL_MISSING 1 /* an input is NaN that never was in the training rows */
#endif
#if GUARD
#define MODEL_OUT_OF_RANGE 2 /* an input is beyond what the model was trained on */
#else
#define MODEL_OUT_OF_RANGE 2 /* an input was moved to the end of its range */
#endif
#if GUARD && CODED
#define MODEL_UNKNOWN_LEVEL 4 /* a category is none of the levels above */
#endif
#if REFUSES
#define MODEL_UNSURE 8 /* the prediction is less sure than the reject option accepts */
#endif
#if NOVELTY
#define MODEL_UNLIKE 16 /* the inputs together are unlike those of the training rows */
#endif

#if LAPLACE && CLASSES
/* epistemic gets MODEL_OUTPUTS numbers: the standard deviation of each logit that is doubt about
   what was learnt, not noise of the data. Larger ones are of inputs less like the training rows.
   Laplace approximation of the last layer; probs hold it already. */
#define MODEL_EPISTEMIC 1

#elif LAPLACE
/* epistemic gets MODEL_OUTPUTS numbers: the part of std that is doubt about what was learnt, not
   noise of the data. Larger ones are of inputs less like the training rows. Laplace approximation
   of the last layer; std holds it already. */
#define MODEL_EPISTEMIC 1

#endif
#if WINDOWS && CLASSES
/* x: a window of sensor values in their own units, all channels of one time after the other. probs
   gets MODEL_OUTPUTS probabilities. Any number of threads may call it, each with its own scratch.
 */
#elif WINDOWS
/* x: a window of sensor values in their own units, all channels of one time after the other. mean
   and std, in the target's units, get MODEL_OUTPUTS numbers each. Any number of threads may call
   it, each with its own scratch. */
#elif CLASSES
/* x: sensor values in their own units. probs gets MODEL_OUTPUTS probabilities. Any number of
   threads may call it, each with its own scratch. */
#else
/* x: sensor values in their own units. mean and std, in the target's units, get MODEL_OUTPUTS
   numbers each. Any number of threads may call it, each with its own scratch. */
#endif
#if CLASSES && LAPLACE
int model_predict(const float *x, float *probs, float *epistemic, void *scratch);
#elif CLASSES
int model_predict(const float *x, float *probs, void *scratch);
#elif LAPLACE
int model_predict(const float *x, float *mean, float *std, float *epistemic, void *scratch);
#else
int model_predict(const float *x, float *mean, float *std, void *scratch);
#endif

#if GUARD
/* The number of the first input that is not MODEL_OK; MODEL_INPUTS where all are. */
unsigned model_flagged_input(const float *x);

#endif
#if NOVELTY
/* How unlike the training rows an input is: -log of a density, up to a constant. Ranks rows. */
float model_surprise(const float *x);

#endif
#if PERSONAL
/* What one user's labels have taught, at the beginning of the scratch, which must therefore be
   zero at first and be kept. The caller computes the change, from what the last layer read and said
   of windows whose class is known. */
typedef struct {
    float change[MODEL_OUTPUTS][MODEL_TOP + 1]; /* added to the last layer's weights and bias */
    float read[MODEL_TOP];                      /* by the last layer, of the last window */
    float logits[MODEL_OUTPUTS];                /* what it said of that, without the change */
} model_personal;

#endif
#if LIVE
#include "state.h"

#endif
#if STREAMS
#include "stream_state.h"

#endif
#if SAMPLED
#include "sampled_state.h"

#endif
#if STREAMS && LIVE
/* As model_live, of the window that ends with this interval; NaN before there is one. What runs on
   from interval to interval does not learn: its last layer reads other numbers than the trained
   one. */
int model_live_interval(model_state *state, model_window *window, const float *x, model_row *row,
                        float *mean, float *std, float *low, float *high, void *scratch);

#endif
#ifdef __cplusplus
}
#endif

#endif
