
int @name@_is_sure(const float *probs)
{
    unsigned k;
    for (k = 0; k < @NAME@_OUTPUTS; ++k) {
        if (probs[k] >= @NAME@_SURE_PROB) {
            return 1;
        }
    }
    return 0;
}
