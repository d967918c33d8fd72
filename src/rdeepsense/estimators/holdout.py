"""Which rows train and which validate.

The result depends on the rows and their weights alone, not on the order of the table: rows are put
in the order of a hash of their content, rows of weight 0 are left out, and repeated rows are one
row with the sum of their weights, so that a weight of 3 is the same as a row written three times.
Rows with equal inputs, or of one group, stay on one side of the split: otherwise the validation
would judge what was learnt by heart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import InputError

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]
CHUNK = 16_384
FEW_INPUTS = 100


@dataclass(frozen=True)
class Part:
    """Some rows of the table (by position) with their weights."""

    index: Indices
    weight: Floats

    @property
    def uneven(self) -> Floats | None:
        """The weights scaled to a mean of 1, or None where all rows weigh the same."""
        if np.all(self.weight == self.weight[0]):
            return None
        uneven: Floats = self.weight / self.weight.mean()
        return uneven


def evenly(index: Indices) -> Part:
    """These rows, all of weight 1."""
    return Part(index, np.ones(len(index)))


def hold_out(
    X: NDArray[Any],
    y: NDArray[Any],
    weight: Floats | None,
    groups: NDArray[Any] | None,
    stratify: bool,
    seed: int,
) -> tuple[Part, Part]:
    """Split into training and validation rows: a fifth to validate, a tenth beyond 5,000 rows.

    With `stratify` (y are class numbers) every class keeps its share, unless groups decide.
    """
    part, cell = _distinct(X, y, weight, groups)
    rng = np.random.default_rng(seed)
    cells = int(cell[-1]) + 1
    if cells < 2:
        what = "groups has only one value" if groups is not None else "all rows have equal inputs"
        raise InputError(f"{what}; the validation split needs two at least")
    fraction = 0.2 if len(part.index) <= 5_000 else 0.1
    labels = np.zeros(cells, dtype=np.int64)
    if stratify and groups is None:
        labels = y[part.index[np.searchsorted(cell, np.arange(cells))]]
    chosen = _draw(labels, fraction, rng)[cell]
    return (
        Part(part.index[~chosen], part.weight[~chosen]),
        Part(part.index[chosen], part.weight[chosen]),
    )


def _distinct(
    X: NDArray[Any], y: NDArray[Any], weight: Floats | None, groups: NDArray[Any] | None
) -> tuple[Part, Indices]:
    """Distinct rows in content order, and for each the number of its cell (inputs, or group)."""
    weight = np.ones(len(X)) if weight is None else weight
    inputs = _hash(X) if groups is None else _hash(np.unique(groups, return_inverse=True)[1])
    content = _hash(X) * np.uint64(3) + _hash(y)
    order = np.lexsort((content, inputs))
    order = order[weight[order] > 0]
    inputs, content = inputs[order], content[order]
    new_cell = np.r_[True, inputs[1:] != inputs[:-1]]
    starts = np.flatnonzero(new_cell | np.r_[True, content[1:] != content[:-1]])
    summed = np.add.reduceat(weight[order], starts)
    index, cell = order[starts], (np.cumsum(new_cell) - 1)[starts]
    if groups is None and cell[-1] + 1 < FEW_INPUTS and np.array_equal(summed, np.rint(summed)):
        # A table of few distinct inputs is one of counts: to hold out an input would be to learn
        # nothing about it, so here single observations are split.
        index = np.repeat(index, summed.astype(np.int64))
        return evenly(index), np.arange(len(index))
    return Part(index, summed), cell


def _draw(labels: Indices, fraction: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A random `fraction` of the cells of each label; at least one cell, and never all."""
    chosen = np.zeros(len(labels), dtype=bool)
    shuffled = np.lexsort((rng.random(len(labels)), labels))
    counts = np.unique(labels, return_counts=True)[1]
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen[shuffled] = rank < np.repeat(np.rint(fraction * counts), counts)
    if not chosen.any():
        chosen[rng.integers(len(labels))] = True
    return chosen


def _hash(values: NDArray[Any]) -> Hashes:
    """64 bits for the content of each row; that two of 10 million rows meet has odds of 3e-6."""
    rows = values.reshape(len(values), -1)
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    out = np.empty(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), CHUNK):
        # Adding 0 turns -0 into 0, which compare equal.
        bits = (rows[start : start + CHUNK].astype(np.float64) + 0.0).view(np.uint64)
        for shift in (32, 29, 31):  # spread the high bits, where floats differ, over all of them
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(0x9E3779B97F4A7C15)
        out[start : start + CHUNK] = (bits * factors).sum(1, dtype=np.uint64)
    return out
