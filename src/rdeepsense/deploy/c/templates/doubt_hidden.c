        if (l + 1 == LAYERS) {
            add_rows(0, w->value, w->index, count, w->doubt);
        }
