/* A mixture of passes, which is called like the model that it is compared with. */
#include "switches.h"
#include "members.h"

#define MODEL_INPUTS MEMBER0_INPUTS
#define MODEL_OUTPUTS MEMBER0_OUTPUTS
#define MODEL_SCRATCH_BYTES MEMBER0_SCRATCH_BYTES
#define MODEL_OK MEMBER0_OK

#if CLASSES
int model_predict(const float *x, float *probs, void *scratch);
#else
int model_predict(const float *x, float *mean, float *std, void *scratch);
#endif
