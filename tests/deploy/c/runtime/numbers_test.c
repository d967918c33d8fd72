/* The functions of one number: known values, and the bounds that their comments state. */
#include "expect.h"

#define CLASSES 0
#define USES_SOFTPLUS 1
#define USES_EXP 1
#define USES_SQRT 1
#define USES_SQUARE 1
#define LIVE 1
#define TAILS 1
#define SPECTRAL 1
#define SIGMOIDAL 1
#define TANGENTIAL 1
#include "numbers.h"

static double apart(float found, double wanted)
{
    return fabs((double)found / wanted - 1.0);
}

static float of_bits(uint32_t bits)
{
    word w;
    w.bits = bits;
    return w.value;
}

static void test_known_values(void)
{
    const float nan = of_bits(0x7fc00000u), infinity = of_bits(0x7f800000u);
    EXPECT(exp_of_minus(0.0f) == 1.0f);
    EXPECT(apart(exp_of_minus(1.0f), 0.36787944117144233) < 3e-7);
    EXPECT(exp_of_minus(1.0f) == exp_of_minus(-1.0f));
    EXPECT(apart(exp_of_minus(1e30f), 1.6458114310822737e-38) < 3e-7);
    EXPECT(exp_of_minus(infinity) == exp_of_minus(87.0f));
    EXPECT(exp_of_minus(nan) == exp_of_minus(87.0f));
    EXPECT(exp_of(0.0f) == 1.0f);
    EXPECT(apart(exp_of(1.0f), 2.718281828459045) < 4e-7);
    EXPECT(apart(exp_of(-10.0f), 4.5399929762484854e-05) < 4e-7);
    EXPECT(apart(exp_of(1e30f), 6.0760302250568722e37) < 4e-7);
    EXPECT(exp_of(infinity) == exp_of(87.0f));
    EXPECT(exp_of(-infinity) == exp_of(-87.0f));
    EXPECT(exp_of(nan) == exp_of(-87.0f));
    EXPECT(apart(softplus(0.0f), 0.69314718055994531) < 6e-7);
    EXPECT(apart(softplus(-1.0f), 0.31326168751822286) < 6e-7);
    EXPECT(softplus(1e30f) == 1e30f);
    EXPECT(softplus(-1e30f) > 0.0f);
    EXPECT(apart(root(4.0f), 2.0) < 4e-7);
    EXPECT(apart(root(1e-30f), 1e-15) < 4e-7);
    EXPECT(root(0.0f) == 0.0f);
    EXPECT(square(-3.0f) == 9.0f);
    EXPECT(sigmoid_of(0.0f) == 0.5f);
    EXPECT(fabs(sigmoid_of(1.0f) - 0.73105857863000487) < 3e-7);
    EXPECT(sigmoid_of(1e30f) == 1.0f);
    EXPECT(sigmoid_of(-1e30f) >= 0.0f && sigmoid_of(-1e30f) < 1e-30f);
    EXPECT(tanh_of(0.0f) == 0.0f);
    EXPECT(fabs(tanh_of(-0.5f) + 0.46211715726000973) < 4e-7);
    EXPECT(tanh_of(1e30f) == 1.0f && tanh_of(-infinity) == -1.0f);
    EXPECT(log_of(1.0f) == 0.0f);
    EXPECT(apart(log_of(16.0f), 2.7725887222397811) < 2e-7);
    EXPECT(apart(log_of(0.5f), -0.69314718055994531) < 2e-7);
    EXPECT(log_of_one_plus(0.0f) == 0.0f);
    EXPECT(apart(log_of_one_plus(1e-30f), 1e-30) < 5e-7);
    EXPECT(apart(log_of_one_plus(1.0f), 0.69314718055994531) < 5e-7);
}

static void test_sizes_order_like_magnitudes(void)
{
    const float rising[] = {0.0f, 1e-45f, 1e-38f, 1.0f, 1.0000001f, 3.4e38f};
    unsigned i;
    for (i = 1; i < sizeof rising / sizeof *rising; ++i) {
        EXPECT(size_of(rising[i - 1]) < size_of(-rising[i]));
        EXPECT(size_of(rising[i]) == size_of(-rising[i]));
        EXPECT(size_of(rising[i]) < INFINITE);
    }
    EXPECT(size_of(-0.0f) == 0);
    EXPECT(size_of(of_bits(0xff800000u)) == INFINITE);
    EXPECT(size_of(of_bits(0xffc00000u)) > INFINITE);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void test_stated_bounds(void)
{
    double minus = 0, power = 0, soft = 0, square_root = 0, logarithm = 0, log_plus = 0;
    double sigmoid = 0, tangent = 0;
    int i;
    for (i = -174000; i <= 200000; ++i) {
        const float sweep = (float)i / 2000.0f;                       /* -87 to 100 */
        const float near = powf(10.0f, (float)(i - 13000) / 5054.0f); /* 1e-37 to 1e37 */
        const float each[] = {sweep, near, near < 87.0f ? -near : -87.0f};
        int j;
        for (j = 0; j < 3; ++j) {
            const float x = each[j];
            const double d = x;
            minus = larger(minus, apart(exp_of_minus(x), exp(-fmin(fabs(d), 87))));
            power = larger(power, apart(exp_of(x), exp(fmin(d, 87))));
            sigmoid = larger(sigmoid, fabs(sigmoid_of(x) - 1 / (1 + exp(-d))));
            tangent = larger(tangent, fabs(tanh_of(x) - tanh(d)));
            soft = larger(soft, apart(softplus(x), fmax(d, 0) + log1p(exp(-fabs(d)))));
        }
        square_root = larger(square_root, apart(root(near), sqrt(near)));
        logarithm = larger(logarithm, fabs(log_of(near) - log(near)) / larger(1, fabs(log(near))));
        log_plus = larger(log_plus, apart(log_of_one_plus(near), log1p(near)));
    }
    EXPECT(minus <= BOUND_exp_of_minus);
    EXPECT(power <= BOUND_exp_of);
    EXPECT(soft <= BOUND_softplus);
    EXPECT(sigmoid <= BOUND_sigmoid_of);
    EXPECT(tangent <= BOUND_tanh_of);
    EXPECT(square_root <= BOUND_root);
    EXPECT(logarithm <= BOUND_log_of);
    EXPECT(log_plus <= BOUND_log_of_one_plus);
}

/* Of any float at all, NaN and infinity among them. */
static void test_exp_is_finite_and_positive(void)
{
    unsigned i;
    for (i = 0; i < 1000000; ++i) {
        const float x = of_bits(draw(0xffffffffu));
        EXPECT(exp_of(x) > 0.0f && size_of(exp_of(x)) < INFINITE);
        EXPECT(exp_of_minus(x) > 0.0f && exp_of_minus(x) <= 1.0f);
    }
}

int main(void)
{
    test_exp_is_finite_and_positive();
    test_known_values();
    test_sizes_order_like_magnitudes();
    test_stated_bounds();
    return failures != 0;
}
