/* Layers with weights. linear and convolve take some rows, whose numbers lie apart; what they make
   of a row is the same to the bit however many rows there are. */

#if BYTES
#include "int8_kernels.h"

typedef struct {
    layer whole;          /* of a group; of convolutions each column is filled up to fours */
    const int32_t *total; /* of the weights of each output; 0 where it reads no signs */
    uint16_t inputs;
    uint16_t levels; /* of what it reads in two bytes; 0 where it has one */
    uint8_t relu;
} weights;
#else
typedef struct {
    const float *weight; /* in panels, in a panel input by input; groups one after the other */
    const float *bias;
    uint16_t inputs, outputs; /* of a group */
    uint8_t relu;
} weights;
#endif

static const weights weighted[] = {WEIGHT_TABLE};

#if CONVOLVED
typedef struct {
    uint16_t height, width, to_height, to_width;          /* of a channel, before and after */
    uint16_t kernel_height, kernel_width, down, across;   /* strides */
    uint16_t above, before, dilated_down, dilated_across; /* zeros around; between taps */
    uint16_t groups;
} plane;

static const plane planes[] = {PLANE_TABLE};
#endif

#if BYTES
#include "weighted_bytes.h"
#else
/* Numbers to be multiplied, the inputs that they are, and sums. */
typedef struct {
    float sum[SUMS];
    float value[ROOM];
#if CONVOLVED
    int32_t held[TAPS];   /* which column of a plane each list is of */
    uint32_t count[TAPS]; /* how many of it are not zero */
#endif
    uint16_t index[ROOM];
} list;

#define PANEL 64 /* outputs */

/* How many outputs the panel that begins with this one has. */
static unsigned panel_of(unsigned outputs, unsigned first)
{
    return outputs - first < PANEL ? outputs - first : PANEL;
}

#if defined(__GNUC__) && (defined(__SSE2__) || defined(__aarch64__)) && !defined(SMALL_STACK)
#include "weighted_lanes.h"
#include "weighted_dense.h"
#else
#include "weighted_sparse.h"
#endif
#endif
