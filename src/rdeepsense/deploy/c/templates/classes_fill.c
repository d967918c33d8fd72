    if (status == @NAME@_NAN) {
        word nan;
        nan.bits = 0x7fc00000u;
        for (k = 0; k < @NAME@_OUTPUTS; ++k) {
            probs[k] = @nan_too@nan.value;
        }
        return status;
    }
