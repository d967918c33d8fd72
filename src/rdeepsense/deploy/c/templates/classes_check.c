static float probs[@NAME@_OUTPUTS]@epistemic_room@;

static int predict(const float *x)
{
    return @name@_predict(x, probs, @epistemic_given@&scratch);
}

static void check_row(int row)
{
    int k;
    expect(predict(inputs + row * @NAME@_INPUTS) == @NAME@_OK, "the row is in range");
    for (k = 0; k < @NAME@_OUTPUTS; ++k) {
        const float away = probs[k] - expected[row * @NAME@_OUTPUTS + k];
        expect(away <= @tolerance@ && -away <= @tolerance@, "probability");
@epistemic_check@    }
}
