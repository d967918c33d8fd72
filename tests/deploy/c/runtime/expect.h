/* What the tests in C have in common: expectations, and numbers that are the same every time. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int failures;

#define EXPECT(condition)                                                   \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            ++failures;                                                     \
        }                                                                   \
    } while (0)

static uint32_t state = 1;

/* From 0 to below the limit. */
static unsigned draw(unsigned limit)
{
    state = state * 1664525u + 1013904223u;
    return (unsigned)(((uint64_t)state * limit) >> 32);
}
