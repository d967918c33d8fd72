/* Predicts many rows, a few at a time and layer by layer; returns all flags together. */

/* As many as the stack has room for; this is for processes, not for firmware. */
#define ROWS                            \
    (MODEL_SCRATCH_BYTES < 8192    ? 32 \
     : MODEL_SCRATCH_BYTES < 16384 ? 16 \
     : MODEL_SCRATCH_BYTES < 65536 ? 4  \
                                   : 1)

#if INT8
#include "int8_many.h"
#else
#include "float_many.h"
#endif

#if CLASSES
#define JUDGED_PART out
#else
#define JUDGED_PART (out + apart)
#endif

int model_predict_many(const float *x, float *out, size_t apart, uint8_t *statuses, size_t rows);
int model_predict_many(const float *x, float *out, size_t apart, uint8_t *statuses, size_t rows)
{
    work w[ROWS];
    int status[ROWS], all = MODEL_OK;
    unsigned few, r;
    for (; rows > 0; rows -= few, x += (size_t)few * MODEL_INPUTS) {
        few = rows < ROWS ? (unsigned)rows : ROWS;
        if (few == 1) {
            status[0] = network(x, w);
        } else {
            networks(x, few, w, status);
        }
        for (r = 0; r < few; ++r, out += MODEL_OUTPUTS) {
#if CLASSES && LAPLACE
            finish(status[r], w + r, out, out + apart);
#elif CLASSES
            finish(status[r], w + r, out);
#elif LAPLACE
            finish(status[r], w + r, out, out + apart, out + 2 * apart);
#else
            finish(status[r], w + r, out, out + apart);
#endif
#if NOVELTY
            status[r] |= unlike(status[r], model_surprise(x + (size_t)r * MODEL_INPUTS), JUDGED_PART);
#endif
#if REFUSES
            status[r] |= unanswerable(status[r], x + (size_t)r * MODEL_INPUTS, MODEL_INPUTS);
#endif
#if REFUSES
            status[r] |= unsure(JUDGED_PART);
#endif
            *statuses++ = (uint8_t)status[r];
            all |= status[r];
        }
    }
    (void)apart; /* one part has none */
    return all;
}
