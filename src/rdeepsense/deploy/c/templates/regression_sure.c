
int @name@_is_sure(const float *std)
{
    unsigned k;
    for (k = 0; k < @NAME@_OUTPUTS; ++k) {
        if (!(std[k] <= @name@_sure_std[k])) {
            return 0;
        }
    }
    return 1;
}
