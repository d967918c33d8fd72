// Reads a motion sensor and prints what the model decides, or that it abstains.
// The library named here is that of the Nano 33 BLE Sense; Arduino_LSM6DS3 and
// Arduino_BMI270_BMM150 have the same functions.
#include <Arduino.h>
#include <Arduino_LSM9DS1.h>

#include "switches.h"

#include "model.h"

#include "named.h"

static float scratch[(MODEL_SCRATCH_BYTES + 3) / 4];

#include "units.h"
// Replace this by your sensor: values in the order and the units that model.h lists, and whether
// there are new ones. A value that is not there now is NAN.
static bool read_motion(float *sample)
{
#include "reading.h"
    return true;
}

#if SAMPLED
#include "why.h"

static model_stream stream;

// micros() begins again every 71 minutes; this does not.
static int64_t microseconds()
{
    static uint32_t last = 0;
    static int64_t rounds = 0;
    const uint32_t now = micros();
    rounds += now < last;
    last = now;
    return rounds * 4294967296LL + now;
}

static void print_decision(const model_decision &decision)
{
    Serial.print((long)(decision.end / 1000));
    Serial.print(" ms: ");
#if CLASSES
    if (decision.label < 0) {
        Serial.print("abstains");
    } else {
        Serial.print(names[decision.label]);
        Serial.print(" ");
        Serial.print(decision.probability, 3);
    }
    print_why(decision.status);
#else
    if (decision.status & MODEL_NOT_ENOUGH_DATA) {
        Serial.print("abstains");
        print_why(decision.status);
        return;
    }
    for (int k = 0; k < MODEL_OUTPUTS; ++k) {
        Serial.print(names[k]);
        Serial.print(" ");
        Serial.print(decision.mean[k], DIGITS);
        Serial.print(" between ");
        Serial.print(decision.low[k], DIGITS);
        Serial.print(" and ");
        Serial.print(decision.high[k], DIGITS);
        print_why(decision.status);
    }
#endif
}

void setup()
{
    Serial.begin(115200);
    if (!IMU.begin()) {
        Serial.println("no motion sensor");
    }
    model_begin_stream(&stream);
}

void loop()
{
    static float sample[MODEL_CHANNELS];
    static model_decision decision;
    if (!read_motion(sample)) {
        return;
    }
    if (model_push(&stream, microseconds(), sample, scratch) != MODEL_OK) {
        Serial.println("a sample came late, and was left out");
    }
    while (model_decide(&stream, &decision, scratch)) {
        print_decision(decision);
    }
}
#else
#include "pace.h"
#define SAMPLES (MODEL_INPUTS / MODEL_CHANNELS)

static float window[MODEL_INPUTS];

#include "why.h"

#include "saying.h"

void setup()
{
    Serial.begin(115200);
    if (!IMU.begin()) {
        Serial.println("no motion sensor");
    }
}

// Samples at a steady pace into a window; when it is full, a decision, and HOP samples go.
void loop()
{
    static int filled = 0;
    static uint32_t due = 0;
    const uint32_t now = micros();
    if (filled > 0 && now - due >= 0x80000000u) {
        return;
    }
    if (!read_motion(window + filled * MODEL_CHANNELS)) {
        return;
    }
    due = (filled > 0 ? due : now) + PERIOD;
    if (++filled < SAMPLES) {
        return;
    }
    predict_and_print(window);
    filled = SAMPLES - HOP;
    memmove(window, window + HOP * MODEL_CHANNELS, sizeof(float) * filled * MODEL_CHANNELS);
}
#endif
