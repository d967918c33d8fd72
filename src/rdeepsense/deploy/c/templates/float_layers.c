@declared@
typedef struct {
    const @weight@ *weight; /* column by column */@single_field@
    const float *bias;@gain_field@
    uint16_t outputs;
} layer;

static const layer layers[] = {
    @rows@};
#define LAYERS @count@

typedef struct {
    float value[@ins@]; /* inputs of a layer that are not zero, */
    float sum[@outs@];@doubt_room@
    uint16_t index[@ins@]; /* and which ones they are */
} work;
typedef char scratch_fits[sizeof(work) == @NAME@_SCRATCH_BYTES ? 1 : -1];

