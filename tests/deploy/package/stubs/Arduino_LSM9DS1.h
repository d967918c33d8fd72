/* A motion sensor that has a new sample every 20 ms: numbers that a test can work out. */
#ifndef LSM9DS1_STUB_H
#define LSM9DS1_STUB_H

#include <Arduino.h>

struct StubIMU {
    int taken = 0;

    int begin()
    {
        return 1;
    }
    int accelerationAvailable()
    {
        return 1;
    }
    int gyroscopeAvailable()
    {
        return 1;
    }
    /* In g: upright, and shaken along x. */
    int readAcceleration(float &x, float &y, float &z)
    {
        x = 0.2f + 0.05f * (float)(taken * 7 % 11 - 5);
        y = 0.01f * (float)(taken * 5 % 7 - 3);
        z = 1.0f;
        return 1;
    }
    /* In degrees a second. */
    int readGyroscope(float &x, float &y, float &z)
    {
        x = 20.0f * (float)(taken * 3 % 5 - 2);
        y = 10.0f;
        z = -10.0f;
        ++taken;
        return 1;
    }
};

static StubIMU IMU;

#endif
