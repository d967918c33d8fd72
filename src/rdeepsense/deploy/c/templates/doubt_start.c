    for (i = 0; i < DOUBTS; ++i) {
        w->doubt[i] = 0.0f;
    }
    w->doubt[DOUBTS - 1] = @name@_root[DOUBTS * (DOUBTS + 1) / 2 - 1];
