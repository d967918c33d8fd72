"""Which numbers of a value another one consists of, as sizes and strides."""

from __future__ import annotations

import numpy as np

from rdeepsense.arrays import Integers
from rdeepsense.deploy.folded.graph.shaping import MOST_AXES, Strided


def strided(read: int, index: Integers) -> Strided | None:
    """Return the step that takes these numbers; None where no few strides do.

    The longest run of equal differences is the last axis; what its first numbers are is the same
    question again.
    """
    sizes: list[int] = []
    strides: list[int] = []
    rest = index
    while len(rest) > 1:
        step = int(rest[1] - rest[0])
        breaks = np.flatnonzero(np.diff(rest) != step)
        run = int(breaks[0]) + 1 if len(breaks) else len(rest)
        if len(rest) % run or len(sizes) == MOST_AXES:
            return None
        rows = rest.reshape(-1, run)
        if not (np.diff(rows, axis=1) == step).all():
            return None
        sizes.insert(0, run)
        strides.insert(0, step)
        rest = rows[:, 0]
    if not sizes:
        sizes, strides = [1], [1]
    return Strided((read,), int(index[0]), tuple(sizes), tuple(strides))
