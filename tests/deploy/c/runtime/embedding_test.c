/* Sines and cosines against the library's, and an embedding worked out by hand. */
#include "expect.h"

#define CLASSES 0
#define USES_SOFTPLUS 0
#define USES_EXP 0
#define USES_SQRT 0
#define USES_SQUARE 0
#define LIVE 0
#define TAILS 0
#define FREQUENCIES 2
#define EMBEDDING_WIDTH 3
#define EMBEDDING_REACH 100.0f
#include <stddef.h>

#include "numbers.h"

/* Of two inputs, the second one: a quarter and minus a whole period for each standard deviation. */
static const float model_frequency[] = {9.0f, 9.0f, 0.25f, -1.0f};
static const float model_embedding_weight[] = {
    9.0f, 9.0f, 9.0f,  9.0f, 9.0f, 9.0f, 9.0f, 9.0f, 9.0f, 9.0f, 9.0f,  9.0f, /* not read */
    1.0f, 0.0f, -1.0f, 0.0f, 2.0f, 0.0f, 0.5f, 0.0f, 0.0f, 1.0f, -1.0f, 3.0f};
static const float model_embedding_bias[] = {9.0f, 9.0f, 9.0f, 0.25f, 1.5f, -1.0f};

#include "embedding.h"

#define TWO_PI 6.283185307179586

static double sine_error(float periods)
{
    const double angle = TWO_PI * fmod(periods, 1.0);
    float sine, cosine;
    double s, c;
    sine_cosine(periods, &sine, &cosine);
    s = fabs(sine - sin(angle));
    c = fabs(cosine - cos(angle));
    return s > c ? s : c;
}

static void test_stated_bound(void)
{
    double worst = 0;
    unsigned i;
    for (i = 0; i < 1000000; ++i) {
        const float turn = (float)i / 300000.0f, sign = i % 2 ? 1.0f : -1.0f;
        const double near = sine_error(sign * turn), far = sine_error(sign * (float)draw(1u << 23));
        const double any = sine_error(sign * turn * (float)draw(300000));
        worst = fmax(worst, fmax(near, fmax(far, any)));
    }
    EXPECT(worst <= BOUND_sine_cosine);
}

static void test_known_values(void)
{
    float sine, cosine;
    sine_cosine(0.0f, &sine, &cosine);
    EXPECT(sine == 0.0f && fabs(cosine - 1.0f) < 3e-7);
    sine_cosine(-7.25f, &sine, &cosine);
    EXPECT(fabs(sine + 1.0f) < 3e-7 && cosine == 0.0f);
    sine_cosine(1000000.0f, &sine, &cosine);
    EXPECT(sine == 0.0f && fabs(cosine - 1.0f) < 3e-7);
}

static int is(const embedding *e, double a, double b, double c)
{
    return fabs(e->value[0] - a) < 1e-6 && fabs(e->value[1] - b) < 1e-6 &&
           fabs(e->value[2] - c) < 1e-6;
}

static void test_embedding(void)
{
    word nan, infinity;
    embedding e, end;
    nan.bits = 0x7fc00000u;
    infinity.bits = INFINITE;
    /* Sines 1 and 0, cosines 0 and 1: 1 + 1 + 0.25, -1 + 1.5, -1 + 3 - 1. */
    embed(1, 1.0f, &e);
    EXPECT(is(&e, 2.25, 0.5, 1.0));
    /* Sines 0, cosines 1: 0.5 + 1 + 0.25, -1 + 1.5, 3 - 1. */
    embed(1, 0.0f, &e);
    EXPECT(is(&e, 1.75, 0.5, 2.0));
    embed(1, nan.value, &e);
    EXPECT(is(&e, 1.75, 0.5, 2.0));
    /* A third of a period back: cosine of 1/12, sine of it; the last is below 0. */
    embed(1, 1.0f / 3, &e);
    EXPECT(is(&e, 0.5 + 0.5 * sqrt(0.75) - 0.5 + 0.25, 2 * -sqrt(0.75) + 0.5 + 1.5, 0.0));
    embed(1, EMBEDDING_REACH, &end);
    embed(1, infinity.value, &e);
    EXPECT(is(&e, end.value[0], end.value[1], end.value[2]));
    embed(1, 1e30f, &e);
    EXPECT(is(&e, end.value[0], end.value[1], end.value[2]));
    embed(1, -EMBEDDING_REACH, &end);
    embed(1, -3e38f, &e);
    EXPECT(is(&e, end.value[0], end.value[1], end.value[2]));
}

int main(void)
{
    test_known_values();
    test_stated_bound();
    test_embedding();
    return failures != 0;
}
