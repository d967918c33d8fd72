@declared@
typedef struct {
    const int8_t *weight;
    const float *bias;
    const float *factor;
    float least; /* 255 times the smallest step of what it writes */
    uint16_t groups; /* of four inputs */
    uint16_t outputs;
} layer;

static const layer layers[] = {
    @rows@};
#define LAYERS @count@
#define LIMIT @limit@
#define ZERO @zero@
#define ROOM @ins@ /* for the inputs of a layer */

typedef struct {
    int32_t sum[@outs@];
    float raw[@columns@];
    uint8_t byte[ROOM]; /* the inputs' high ones, then activations */
    union {
        uint8_t low[ROOM];        /* the inputs' low ones */
        uint16_t group[ROOM / 4]; /* of four activations: those that are not all zero */
    } room;
} work;
typedef char scratch_fits[sizeof(work) == @NAME@_SCRATCH_BYTES ? 1 : -1];

