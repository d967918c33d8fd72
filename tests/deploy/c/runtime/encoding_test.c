/* Rows of two numbers and two categories, worked out by hand. */
#include "expect.h"

#define CLASSES 0
#define USES_SOFTPLUS 0
#define USES_EXP 0
#define USES_SQRT 0
#define USES_SQUARE 0
#define LIVE 0
#define TAILS 0
#define NUMBERED 1
#define FLAGGED 1
#define CODED 1
#define NUMBERS 2
#define FLAGS 1
#define CATEGORIES 2
#include <stddef.h>

#include "numbers.h"

/* x is a category of three levels, a number, a category of one level, a number that may be NaN. */
static const int32_t model_numbers[] = {1, 3};
static const int32_t model_flags[] = {3};
static const int32_t model_categories[] = {0, 2};
static const int32_t model_category_levels[] = {3, 1};
static const int32_t model_category_width[] = {2, 1};
static const float model_vectors[] = {1.0f, 2.0f, 3.0f, 4.0f,  5.0f,  6.0f, 7.0f,
                                      8.0f, 9.0f, 0.5f, 10.0f, 11.0f, 12.0f};

#include "encoding.h"

static float nan_of(void)
{
    word nan;
    nan.bits = 0x7fc00000u;
    return nan.value;
}

static void test_rows_of_levels(void)
{
    EXPECT(level_row(0.0f, 3) == 0 && level_row(2.0f, 3) == 2);
    EXPECT(level_row(3.0f, 3) == 3 && level_row(4.0f, 3) == 3 && level_row(-1.0f, 3) == 3);
    EXPECT(level_row(0.5f, 3) == 3 && level_row(3e38f, 3) == 3 && level_row(-3e38f, 3) == 3);
    EXPECT(level_row(nan_of(), 3) == 4 && level_row(-0.0f, 3) == 0);
}

static void test_any_code_has_a_row(void)
{
    unsigned i;
    for (i = 0; i < 10000; ++i) {
        const int code = (int)draw(2000) - 1000, levels = (int)draw(500);
        const uint32_t row = (uint32_t)(code >= 0 && code < levels ? code : levels);
        EXPECT(level_row((float)code, (uint32_t)levels) == row);
        EXPECT(level_row((float)code + 0.25f, (uint32_t)levels) == (uint32_t)levels);
    }
}

static void test_what_is_read(void)
{
    float x[] = {1.0f, 20.0f, 0.0f, 40.0f}, wide[6];
    encode(x, wide);
    EXPECT(wide[0] == 20.0f && wide[1] == 40.0f && wide[2] == 0.0f);
    EXPECT(wide[3] == 3.0f && wide[4] == 4.0f && wide[5] == 10.0f);
    x[0] = 7.0f;
    x[2] = x[3] = nan_of();
    encode(x, wide);
    EXPECT(wide[0] == 20.0f && size_of(wide[1]) > INFINITE && wide[2] == 1.0f);
    EXPECT(wide[3] == 7.0f && wide[4] == 8.0f && wide[5] == 12.0f);
}

int main(void)
{
    test_rows_of_levels();
    test_any_code_has_a_row();
    test_what_is_read();
    return failures != 0;
}
