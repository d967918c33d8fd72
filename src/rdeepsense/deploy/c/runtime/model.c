/* Plain C99: no library is called, nothing is allocated, nothing global is written. */
#include "model.h"

#include <stddef.h>
#include <stdint.h>

#include "config.h"

#include "numbers.h"

#if ENCODED
#include "encoding.h"
#endif

#if GUARD
#include "guard.h"
#endif

#if REFUSES
#include "refuse.h"
#endif

#if EMBEDDED
#include "embedding.h"
#endif

#if LAPLACE
#include "laplace.h"
#endif

#if WINDOWS
#include "window_network.h"
#elif INT8
#include "int8_kernels.h"

#include "int8_network.h"
#elif MANY && SINGLES
#include "float_kernels.h"

#include "float_piece.h"

#include "float_network.h"
#else
#include "float_kernels.h"

#include "float_network.h"
#endif

#if NOVELTY
#include "novelty.h"
#endif

#if LIVE || NARROWED
#include "projection.h"
#endif

#if NARROWED
#include "narrow.h"
#endif

#if CLASSES
#include "classes.h"
#elif LIVE
#include "regression.h"

#include "live.h"
#else
#include "regression.h"
#endif

#if STREAMS
#include "stream.h"
#endif

#if SAMPLED
#include "sampled.h"

#include "decide.h"

#include "push.h"
#endif

#if STREAMS && LIVE
/* A stream of intervals that learns on. */

int model_live_interval(model_state *state, model_window *window, const float *x, model_row *row,
                        float *mean, float *std, float *low, float *high, void *scratch)
{
    const int status = model_push_interval(window, x, row->mean, row->std, scratch);
#if REFUSES
    return answer(status, state, row, mean, std, low, high, scratch) |
           (all_noted(window->status) & MODEL_UNSURE);
#else
    return answer(status, state, row, mean, std, low, high, scratch);
#endif
}
#endif

#if MANY && WINDOWS
/* Predicts rows one after the other; returns all flags together. */

#include "predict_into.h"

int model_predict_many(const float *x, float *out, size_t apart, uint8_t *statuses, size_t rows);
int model_predict_many(const float *x, float *out, size_t apart, uint8_t *statuses, size_t rows)
{
    work w; /* on the stack, so that any number of threads may call */
    size_t r;
    int status, all = MODEL_OK;
    for (r = 0; r < rows; ++r) {
        status = predict_into(x + r * MODEL_INPUTS, out + r * MODEL_OUTPUTS, apart, &w);
        statuses[r] = (uint8_t)status;
        all |= status;
    }
    return all;
}
#elif MANY
#include "many.h"
#endif
