extern const float model_centre[];
extern const float model_per_scale[];
extern const float model_weight_0[];
extern const float model_bias_0[];
extern const float model_weight_1[];
extern const float model_bias_1[];
extern const float model_spread[];
extern const float model_low[];
extern const float model_high[];
extern const float model_fallback[];

#define LAYERS 2
#define LAYER_TABLE \
    {model_weight_0, model_bias_0, 5}, \
    {model_weight_1, model_bias_1, 2}
#define NETWORK_INPUTS 3 /* what the network reads of a row */
#define ROOM 8 /* for the inputs of a layer */
#define SUMS 5 /* of a layer */

/* Where output k lies and how wide it is, from the columns of the last layer. */
#define LOCATION(raw, k) raw[k]
#define WIDTH(raw, k) root(softplus(raw[MODEL_OUTPUTS + k]) + 9.99999975e-05f)
