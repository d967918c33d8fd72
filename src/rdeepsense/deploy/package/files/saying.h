#if CLASSES
static void predict_and_print(const float *x)
{
    float probs[MODEL_OUTPUTS];
#if LAPLACE
    float epistemic[MODEL_OUTPUTS];
    const int status = model_predict(x, probs, epistemic, scratch);
#else
    const int status = model_predict(x, probs, scratch);
#endif
    int best = 0;
    for (int k = 1; k < MODEL_OUTPUTS; ++k) {
        best = probs[k] > probs[best] ? k : best;
    }
    if (status != MODEL_OK) {
        Serial.print("abstains");
        print_why(status);
        return;
    }
    Serial.print(names[best]);
    Serial.print(" ");
    Serial.println(probs[best], 3);
}
#else
static void predict_and_print(const float *x)
{
    float mean[MODEL_OUTPUTS], std[MODEL_OUTPUTS];
#if LAPLACE
    float epistemic[MODEL_OUTPUTS];
    const int status = model_predict(x, mean, std, epistemic, scratch);
#else
    const int status = model_predict(x, mean, std, scratch);
#endif
    if (status != MODEL_OK) {
        Serial.print("abstains");
        print_why(status);
        return;
    }
    for (int k = 0; k < MODEL_OUTPUTS; ++k) {
        Serial.print(names[k]);
        Serial.print(" ");
        Serial.print(mean[k], DIGITS);
        Serial.print(" +- ");
        Serial.println(std[k], DIGITS);
    }
}
#endif
