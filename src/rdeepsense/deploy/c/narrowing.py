"""What C needs to narrow the predictions of an adapted model; the code is `runtime/narrow.h`."""

from __future__ import annotations

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.c.layout import trapezoid
from rdeepsense.deploy.c.text import number
from rdeepsense.deploy.folded.narrowing import Narrowing


def narrow_arrays(narrowing: Narrowing) -> dict[str, Floats]:
    """Return the tables by name: triangles, row by row, one direction after the other."""
    rows, size = narrowing.turned.shape[1:]
    lower, upper = np.tril_indices(rows, m=size), np.triu_indices(size)
    return {
        "narrow_turned": narrowing.turned[:, *lower].ravel(),
        "narrow_left": narrowing.left[:, *upper].ravel(),
        "narrow_shares": narrowing.shares.ravel(),
    }


def narrow_config(narrowing: Narrowing, hidden: int) -> list[str]:
    """Return the macros of model.c."""
    count, size = narrowing.left.shape[:2]
    return [
        f"#define HIDDEN {hidden} /* numbers that the last layer reads */",
        f"#define NARROW_COUNT {count} /* directions of the outputs */",
        f"#define NARROW_SIZE {size}",
        f"#define NARROW_TURNED {trapezoid(hidden + 1, size)}",
        f"#define NARROW_LEAST {number(narrowing.least)}",
    ]
