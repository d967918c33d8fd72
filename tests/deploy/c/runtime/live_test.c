/* The functions of a stream, on a network of one hidden number that says mean 0 and std 1. */
#include "expect.h"

#include <stddef.h>

#define CLASSES 0
#define LIVE 1
#define TAILS 1
#define INT8 0
#define USES_SOFTPLUS 0
#define USES_EXP 1
#define USES_SQRT 1
#define USES_SQUARE 0
#include "numbers.h"

#define MODEL_OK 0
#define MODEL_OUTPUTS 1
#define MODEL_FILTERS 1
#define MODEL_DIRECTIONS 2
#define MODEL_STRETCHES 2
#include "state.h"

#define HIDDEN 1
#define WITHIN 0.5f
#define ETA 0.25f
#define ALPHA 0.5f
#define SHARED 0.5f
#define FARTHEST 3.0f
#define STATE_MAGIC 0x6c646172u
#define STATE_OF 0x12345678u
#define MOST_COVARIANCE 1.001f
#define MOST_OFF 100.0f
#define MOST_APART 1e6f
#define MOST_LOG_Q 30.0f

static const float model_turned[] = {2.0f, 0.5f, 1.0f}, model_unit[] = {10.0f};
static const float model_interval[] = {1.5f}, model_forget[] = {0.25f}, model_fade[] = {0.5f};
static const float model_prior[] = {0.5f, 0.0f, 0.5f, 0.0f}, model_stretch[] = {1.0f, 4.0f};
static const float model_freedom[] = {4.0f};

typedef struct {
    float value[2];
    uint16_t index[2];
    uint32_t count;
} work;

static int model_predict(const float *x, float *mean, float *std, void *scratch)
{
    work *w = scratch;
    w->value[0] = x[0]; /* of ReLU */
    w->index[0] = 0;
    w->count = x[0] > 0.0f;
    mean[0] = 0.0f;
    std[0] = 10.0f;
    return MODEL_OK;
}

#include "projection.h"

#include "live.h"

static model_state learnt;
static model_row row;
static work scratch;
static float mean, std, low, high;

static int live(float x)
{
    return model_live(&learnt, &x, &row, &mean, &std, &low, &high, &scratch);
}

static int observe(float y)
{
    return model_observe(&learnt, &row, &y);
}

static int near(float found, double wanted)
{
    return fabs((double)found - wanted) <= 2e-6 * (1 + fabs(wanted));
}

static void test_before_any_label(void)
{
    model_begin(&learnt);
    EXPECT(live(1.0f) == MODEL_OK);
    EXPECT(row.psi[0] == 2.5f && row.psi[1] == 1.0f); /* B^T [1, 1] */
    EXPECT(mean == 0.0f && near(std, 10.0));
    EXPECT(near(low, -15.0) && near(high, 15.0));
    EXPECT(live(0.0f) == MODEL_OK);
    EXPECT(row.psi[0] == 0.5f && row.psi[1] == 1.0f);
    EXPECT(learnt.rows == 2 && learnt.labels == 0);
}

/* psi = (0.5, 1), C psi = psi, psi^T C psi = 1.25, r = 0.5, so that a label of 7 is an error of 0.7
   and moves the weights by 0.7 / 1.75 psi = 0.4 psi. */
static void test_one_label(void)
{
    model_begin(&learnt);
    live(0.0f);
    EXPECT(observe(7.0f) == MODEL_OK);
    EXPECT(near(learnt.weights[0][0][0], 0.1) && near(learnt.weights[0][0][1], 0.2));
    EXPECT(near(learnt.covariance[0][0], 0.75 * (1 - 0.25 / 1.75) + 0.25));
    EXPECT(near(learnt.covariance[0][1], 0.75 * -0.5 / 1.75));
    EXPECT(near(learnt.covariance[0][2], 0.75 * (1 - 1 / 1.75) + 0.25));
    EXPECT(near(learnt.log_q[0], -0.125)); /* 7 was inside */
    /* The filter said what the frozen model did. */
    EXPECT(near(learnt.trust[0][0], 0.5) && near(learnt.trust[1][0], 0.5));
    EXPECT(learnt.labels == 1);
    live(0.0f);
    EXPECT(near(row.shift[0][0], 0.25));
    EXPECT(near(mean, 1.25));
}

/* Frozen: -(5 / 2) log(1 + 4 / 2); moved by 2: 0; both as wide. */
static void test_experts_are_weighed_by_what_they_said(void)
{
    const double odds = pow(3.0, -2.5);
    model_begin(&learnt);
    live(0.0f);
    row.shift[0][0] = 2.0f;
    observe(20.0f);
    EXPECT(near(learnt.trust[0][0], 0.5 * odds / (1 + odds) + 0.25));
    EXPECT(near(learnt.trust[1][0], 0.5 / (1 + odds) + 0.25));
    EXPECT(near(learnt.log_q[0], 0.125)); /* 20 was outside */
}

static void test_an_error_counts_as_three_stds(void)
{
    model_begin(&learnt);
    live(0.0f);
    EXPECT(observe(990.0f) == MODEL_OK);
    EXPECT(near(learnt.weights[0][0][1], 0.5 * 3 / sqrt(1.75)));
}

static void test_what_is_refused_changes_nothing(void)
{
    model_state before;
    word nan, infinity;
    const unsigned char *a = (const unsigned char *)&before, *b = (const unsigned char *)&learnt;
    unsigned i;
    nan.bits = 0x7fc00000u;
    infinity.bits = 0xff800000u;
    model_begin(&learnt);
    live(1.0f);
    observe(3.0f);
    before = learnt;
    EXPECT(observe(nan.value) == MODEL_BAD_LABEL);
    EXPECT(observe(infinity.value) == MODEL_BAD_LABEL);
    EXPECT(observe(1001.0f) == MODEL_FAR_LABEL);
    EXPECT(observe(-3e38f) == MODEL_FAR_LABEL);
    row.std[0] = nan.value;
    EXPECT(observe(1.0f) == MODEL_BAD_ROW);
    for (i = 0; i < sizeof learnt; ++i) {
        EXPECT(a[i] == b[i]);
    }
}

/* C never exceeds the identity and stays positive definite, whatever the labels are. */
static void test_no_label_breaks_the_state(void)
{
    unsigned i;
    model_begin(&learnt);
    for (i = 0; i < 100000; ++i) {
        const float *c = learnt.covariance[0];
        word any;
        live((float)draw(1000) / 100.0f);
        any.bits = draw(0xffffffffu);
        observe(i % 3 ? any.value : 900.0f);
        EXPECT(c[0] > 0.0f && c[2] > 0.0f && c[0] <= 1.0f && c[2] <= 1.0f);
        EXPECT(c[0] * c[2] - c[1] * c[1] > 0.0f);
        EXPECT((1.0f - c[0]) * (1.0f - c[2]) - c[1] * c[1] > -1e-6f);
        EXPECT(
            near(learnt.trust[0][0] + learnt.trust[0][1] + learnt.trust[1][0] + learnt.trust[1][1],
                 1.0));
        EXPECT(size_of(mean) < INFINITE && size_of(std) < INFINITE);
        EXPECT(learnt.log_q[0] >= -30.0f && learnt.log_q[0] <= 30.0f);
    }
}

/* A sealed state is whole; a bit that flips, another model's, and hostile numbers are told. */
static void test_a_state_that_is_read_is_checked(void)
{
    model_state kept;
    unsigned char *byte = (unsigned char *)&learnt;
    word nan;
    unsigned i;
    nan.bits = 0x7fc00000u;
    model_begin(&learnt);
    EXPECT(model_check(&learnt) == MODEL_BAD_STATE); /* not sealed */
    live(1.0f);
    observe(3.0f);
    model_seal(&learnt);
    EXPECT(model_check(&learnt) == MODEL_OK);
    for (i = 0; i < sizeof learnt; ++i) {
        byte[i] ^= 4u;
        EXPECT(model_check(&learnt) == MODEL_BAD_STATE);
        byte[i] ^= 4u;
    }
    kept = learnt;
    learnt.weights[0][0][1] = nan.value;
    model_seal(&learnt);
    EXPECT(model_check(&learnt) == MODEL_BAD_STATE);
    learnt = kept;
    learnt.covariance[0][0] = -0.5f;
    model_seal(&learnt);
    EXPECT(model_check(&learnt) == MODEL_BAD_STATE);
    learnt = kept;
    learnt.covariance[0][1] = 7.0f;
    model_seal(&learnt);
    EXPECT(model_check(&learnt) == MODEL_BAD_STATE);
    learnt = kept;
    learnt.trust[0][0] = 1.5f;
    model_seal(&learnt);
    EXPECT(model_check(&learnt) == MODEL_BAD_STATE);
    learnt = kept;
    learnt.log_q[0] = nan.value;
    model_seal(&learnt);
    EXPECT(model_check(&learnt) == MODEL_BAD_STATE);
    learnt = kept;
    learnt.model ^= 1u;
    learnt.sum = summed(&learnt);
    EXPECT(model_check(&learnt) == MODEL_BAD_STATE);
    learnt = kept;
    EXPECT(model_check(&learnt) == MODEL_OK);
}

int main(void)
{
    test_a_state_that_is_read_is_checked();
    test_no_label_breaks_the_state();
    test_before_any_label();
    test_one_label();
    test_experts_are_weighed_by_what_they_said();
    test_an_error_counts_as_three_stds();
    test_what_is_refused_changes_nothing();
    return failures != 0;
}
