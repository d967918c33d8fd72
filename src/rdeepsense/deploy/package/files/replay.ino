// Predicts rows that were stored at export and prints what was expected beside it.
#include <Arduino.h>

#include "model.h"
#include "replay.h"

static void print_line(const char *text)
{
    Serial.println(text);
}

void setup()
{
    Serial.begin(115200);
}

void loop()
{
    model_replay(print_line);
    delay(10000);
}
