static float mean[@NAME@_OUTPUTS], std[@NAME@_OUTPUTS]@epistemic_room@;

static int predict(const float *x)
{
    return @name@_predict(x, mean, std, @epistemic_given@&scratch);
}

static float distance(float a, float b)
{
    return a > b ? a - b : b - a;
}

static void check_row(int row)
{
    const float *m = means + row * @NAME@_OUTPUTS, *s = stds + row * @NAME@_OUTPUTS;
    int k;
    expect(predict(inputs + row * @NAME@_INPUTS) == @NAME@_OK, "the row is in range");
    for (k = 0; k < @NAME@_OUTPUTS; ++k) {
        const float size = m[k] > 0 ? m[k] : -m[k];
        expect(distance(mean[k], m[k]) <= @tolerance@ * s[k] + 1e-6f * size, "mean");
        expect(distance(std[k], s[k]) <= @tolerance@ * s[k], "std");
@epistemic_check@    }
}
