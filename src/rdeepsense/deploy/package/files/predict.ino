// Reads sensor values, predicts, and prints the prediction or why there is none.
#include <Arduino.h>

#include "switches.h"

#include "model.h"

#include "named.h"

static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];

// Replace this by your sensors: values in the order and the units that model.h lists.
static void read_sensors(float *x)
{
#include "typical.h"
    for (int k = 0; k < MODEL_INPUTS; ++k) {
        x[k] = typical[k];
    }
}

#include "why.h"

#include "saying.h"

void setup()
{
    Serial.begin(115200);
}

void loop()
{
    static float x[MODEL_INPUTS];
    read_sensors(x);
    predict_and_print(x);
    delay(1000);
}
