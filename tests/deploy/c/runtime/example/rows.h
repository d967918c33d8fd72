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

#define ROWS 3
#define TOLERANCE 2e-4f
#define CHECKSUM 2269118464u
#define ADD_TABLES \
    ADD(model_centre, 3, bits_of) \
    ADD(model_per_scale, 3, bits_of) \
    ADD(model_weight_0, 15, bits_of) \
    ADD(model_bias_0, 5, bits_of) \
    ADD(model_weight_1, 10, bits_of) \
    ADD(model_bias_1, 2, bits_of) \
    ADD(model_spread, 1, bits_of) \
    ADD(model_low, 3, bits_of) \
    ADD(model_high, 3, bits_of) \
    ADD(model_fallback, 1, bits_of)

static const float inputs[ROWS * MODEL_INPUTS] = {
    20.0f, 0.0f, -3.0f, 24.0f, 0.25f, -2.0f, 14.0f, -0.5f,
    -4.0f};

static const float expected_mean[ROWS * MODEL_OUTPUTS] = {
    2.625f, 16.375f, 6.625f};

static const float expected_std[ROWS * MODEL_OUTPUTS] = {
    1.24413991f, 3.17576456f, 3.06614184f};
