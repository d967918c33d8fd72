#define MODEL_INPUTS 3
#define MODEL_OUTPUTS 1

/* What predict needs for its sums; the caller gives it, aligned for float. */
#define MODEL_SCRATCH_BYTES 68

/* An input further than this many standard deviations of the training rows from their mean is moved
   there, and out of range. */
#define MODEL_REACH 1000000.0f
