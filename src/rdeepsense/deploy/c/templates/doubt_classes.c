    doubt = doubt_of(w->doubt);
    for (k = 0; k < @NAME@_OUTPUTS; ++k) {
        middle += w->@raw@[k] / @NAME@_OUTPUTS;
    }
    for (k = 0; k < @NAME@_OUTPUTS; ++k) {
        w->@raw@[k] = (w->@raw@[k] - middle) / root(1.0f + @name@_gain[k] * doubt);
        epistemic[k] = @name@_doubt[k] * root(doubt);
    }
