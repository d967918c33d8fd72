// What is the matter with a row, in words, and the end of its line.
static void print_why(int status)
{
    if (status & MODEL_MISSING) {
        Serial.print(", missing");
    }
    if (status & MODEL_OUT_OF_RANGE) {
        Serial.print(", out of range");
    }
#ifdef MODEL_UNKNOWN_LEVEL
    if (status & MODEL_UNKNOWN_LEVEL) {
        Serial.print(", unknown level");
    }
#endif
#ifdef MODEL_UNSURE
    if (status & MODEL_UNSURE) {
        Serial.print(", unsure");
    }
#endif
#ifdef MODEL_UNLIKE
    if (status & MODEL_UNLIKE) {
        Serial.print(", unlike");
    }
#endif
#ifdef MODEL_NOT_ENOUGH_DATA
    if (status & MODEL_NOT_ENOUGH_DATA) {
        Serial.print(", not enough data");
    }
#endif
    Serial.println("");
}
