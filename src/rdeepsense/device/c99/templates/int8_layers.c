@declared@
typedef struct {
    const int8_t *weight;
    const int32_t *bias;
    const float *factor;
    uint16_t groups; /* of four inputs */
    uint16_t outputs;
} layer;

static const layer layers[] = {
    @rows@};
#define LAYERS @count@
#define LIMIT @limit@
#define ZERO @zero@

typedef struct {
    int32_t sum[@outs@];
    float raw[@columns@];
    uint8_t byte[2][@ins@]; /* of the inputs the high and the low ones, then activations */
} work;
typedef char scratch_fits[sizeof(work) == @NAME@_SCRATCH_BYTES ? 1 : -1];

