/* Layers with weights. These lie in panels of PANEL outputs, in a panel input by input. */

#if BYTES
typedef int8_t stored;
#else
typedef float stored;
#endif

typedef struct {
    const stored *weight; /* of groups one after the other */
#if BYTES
    const float *factor; /* of each output */
#endif
    const float *bias;
    uint16_t inputs, outputs; /* of a group */
    uint8_t relu;
} weights;

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

#define PANEL 64

/* How many outputs the panel that begins with this one has. */
static unsigned panel_of(unsigned outputs, unsigned first)
{
    return outputs - first < PANEL ? outputs - first : PANEL;
}

/* linear and convolve take some rows, whose numbers lie apart. The sums of a row are the same to
   the bit however many rows there are. */
#if !BYTES
#if defined(__GNUC__) && (defined(__SSE2__) || defined(__aarch64__)) && !defined(SMALL_STACK)
#include "weighted_lanes.h"
#include "weighted_dense.h"
#endif
#endif

#ifndef LANES
#include "weighted_sparse.h"
#endif
