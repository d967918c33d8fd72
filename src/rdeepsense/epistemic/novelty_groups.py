"""Novelty for a new group: the density of all rows, its threshold from groups that were left out.

Rows held out at random are of known people, and a new person's rows surprise a density more than
those do. So the rows of each of K = min(groups, 8) folds of whole groups are scored by a density of
the other folds, and novelty is the share of these scores that are at most a row's own. Each group
counts alike, whatever its number of rows: the scores kept are the quantiles i / (n + 1) of

    F(t) = mean over groups of the share of the group's scores that is at most t
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.epistemic.novelty import FEWEST_ROWS, MOST_HELD_OUT, MOST_ROWS, Novelty
from rdeepsense.errors import InputError

FEWEST_GROUPS, MOST_FOLDS = 3, 8


def drawn(rows: int, most: int = MOST_ROWS) -> NDArray[np.int64]:
    """Draw at most so many rows at random, in their order."""
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])


def fit_across_groups(rows: NDArray[Any], groups: NDArray[Any]) -> Novelty:
    """Fit the density to standardised rows, or windows, and score each group by the others."""
    labels, number = np.unique(groups, return_inverse=True)
    if len(labels) < FEWEST_GROUPS:
        raise InputError(
            f"groups holds {len(labels)} of them; at least {FEWEST_GROUPS} are needed to leave "
            "some out"
        )
    folds = min(len(labels), MOST_FOLDS)
    fold = (np.random.default_rng(0).permutation(len(labels)) % folds)[number]
    surprise = np.empty(len(rows))
    for own in range(folds):
        out = fold == own
        if (known := int((~out).sum())) < FEWEST_ROWS:
            raise InputError(
                f"novelty has {known} rows to learn from without the groups left out; at least "
                f"{FEWEST_ROWS} are needed"
            )
        surprise[out] = Novelty.fit(rows[~out], rows[:0]).surprise(rows[out])
    weight = 1 / np.bincount(number)[number]
    return replace(Novelty.fit(rows, rows[:0]), held_out=quantiles(surprise, weight))


def quantiles(values: Floats, weight: Floats) -> Floats:
    """Return the quantiles i / (n + 1) of weighted values; of equal weights, the values."""
    order = np.argsort(values)
    reached = np.cumsum(weight[order]) / weight.sum()
    count = min(len(values), MOST_HELD_OUT)
    at = np.searchsorted(reached, np.arange(1, count + 1) / (count + 1))
    found: Floats = values[order[np.minimum(at, len(values) - 1)]]
    return found
