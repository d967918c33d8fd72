/* As much of Arduino's core as sketches use, on a machine with a C library. */
#ifndef ARDUINO_STUB_H
#define ARDUINO_STUB_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t stub_clock = 4294000000u; /* so that it begins again in the first second */

static inline uint32_t micros()
{
    return stub_clock;
}

static inline void delay(uint32_t milliseconds)
{
    stub_clock += 1000u * milliseconds;
}

struct StubSerial {
    void begin(unsigned long)
    {
    }
    void print(const char *text)
    {
        printf("%s", text);
    }
    void print(int number)
    {
        printf("%d", number);
    }
    void print(long number)
    {
        printf("%ld", number);
    }
    void print(double number, int digits)
    {
        printf("%.*f", digits, number);
    }
    void println(const char *text)
    {
        printf("%s\n", text);
    }
    void println(int number)
    {
        printf("%d\n", number);
    }
    void println(double number, int digits)
    {
        printf("%.*f\n", digits, number);
    }
};

static StubSerial Serial;

void setup();
void loop();

#endif
