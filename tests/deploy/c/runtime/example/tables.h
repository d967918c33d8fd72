const float model_centre[3] = {
    20.0f, 0.0f, -3.0f};

const float model_per_scale[3] = {
    0.25f, 2.0f, 1.0f};

const float model_weight_0[15] = {
    -7.0f, -4.0f, -1.0f, 2.0f, 5.0f, -0.75f, -0.375f, 0.0f,
    0.375f, 0.75f, -1.25f, -0.5f, 0.25f, 1.0f, 1.75f};

const float model_bias_0[5] = {
    0.5f, 0.0f, -0.5f, 0.25f, 1.0f};

const float model_weight_1[10] = {
    1.0f, 0.0f, -1.0f, 0.5f, 0.5f, -0.25f, 0.0f, 1.0f,
    2.0f, 0.0f};

const float model_bias_1[2] = {
    0.125f, -1.0f};

const float model_spread[1] = {
    2.0f};

const float model_low[3] = {
    0.0f, -2.0f, -8.0f};

const float model_high[3] = {
    40.0f, 2.0f, 2.0f};

const float model_fallback[1] = {
    6.0f};
