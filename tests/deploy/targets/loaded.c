/* Loads a library that holds levels. With its path alone, prints model_levels() and the levels
   whose code it holds; with a level after it, predicts rows.h at that level and prints every number
   by its bits, as many_rows.c does. */
#include "model.h"
#include "rows.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef CLASSES
#define PARTS 1
#else
#define PARTS 2
#endif

typedef int many(const float *x, float *out, size_t apart, uint8_t *statuses, size_t count);

static union {
    float values[2 * ROWS * MODEL_OUTPUTS];
    uint32_t bits[2][ROWS][MODEL_OUTPUTS];
} out;

static many *at_level(void *library, const char *level)
{
    char name[80];
    union {
        void *address;
        many *call;
    } found;
    snprintf(name, sizeof name, "model_predict_many_%s", level);
    found.address = dlsym(library, name);
    return found.call;
}

int main(int count, char **words)
{
    static const char *const levels[] = {"neon", "dotprod", "i8mm"};
    void *library = dlopen(words[1], RTLD_NOW);
    union {
        void *address;
        unsigned (*call)(void);
    } found;
    uint8_t status[ROWS];
    many *predict;
    int row, part, k;
    if (library == 0) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (count == 2) {
        found.address = dlsym(library, "model_levels");
        printf("%u", found.address ? found.call() : 0);
        for (k = 0; k < 3; ++k) {
            if (at_level(library, levels[k])) {
                printf(" %s", levels[k]);
            }
        }
        printf("\n");
        return 0;
    }
    predict = at_level(library, words[2]);
    predict(rows[0], out.values, ROWS * MODEL_OUTPUTS, status, ROWS);
    for (row = 0; row < ROWS; ++row) {
        for (part = 0; part < 2; ++part) {
            for (k = 0; k < MODEL_OUTPUTS; ++k) {
                const uint32_t bits = part < PARTS ? out.bits[part][row][k] : 0;
                printf("%08lx\n", (unsigned long)bits);
            }
        }
    }
    return 0;
}
