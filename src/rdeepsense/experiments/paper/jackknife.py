"""Standard errors over test rows that are not independent: of any figure, and of differences.

Test rows fall into blocks: the groups (users, records) where the split is by groups, else 50
stretches of rows. Every figure here follows from sums over blocks, so leaving one block out at a
time is cheap, and B such values give

    se^2 = (B - 1) / B * sum_b (value_b - mean)^2.

Two methods judged on the same rows are compared by the values of their difference, in which
whatever makes a block hard for both drops out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats

BLOCKS = 50


def blocks(rows: int, groups: NDArray[np.generic] | None = None) -> NDArray[np.intp]:
    """Return the block of each row; whole groups, several to a block where there are many."""
    if groups is None:
        return np.arange(rows) * min(BLOCKS, rows) // rows
    number = np.unique(groups, return_inverse=True)[1]
    return np.asarray(number % BLOCKS, dtype=np.intp)


def block_sums(values: NDArray[np.generic], block: NDArray[np.intp]) -> Floats:
    """Return sums of `values` (rows, ...) over the rows of each block: (blocks, ...)."""
    sums = np.zeros((int(block.max()) + 1, *values.shape[1:]))
    np.add.at(sums, block, values)
    return sums


def leave_one_out(sums: Floats, figure: Callable[[Floats], float]) -> list[float | None]:
    """Return the figure without each block in turn; None where it is not finite."""
    total = sums.sum(axis=0)
    values = [figure(total - own) for own in sums]
    return [value if math.isfinite(value) else None for value in values]


def standard_error(values: Sequence[float | None]) -> float | None:
    """Return the error from leave-one-out values; None below two blocks, or where one lacks."""
    known = np.array([value for value in values if value is not None])
    if len(known) < 2 or len(known) < len(values):
        return None
    spread = np.sum((known - known.mean()) ** 2)
    return float(np.sqrt((len(known) - 1) / len(known) * spread))
