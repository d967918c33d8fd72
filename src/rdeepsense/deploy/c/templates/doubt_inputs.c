    add_rows(@hidden@, w->value, w->index, count, w->doubt);
