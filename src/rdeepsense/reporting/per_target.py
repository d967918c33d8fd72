"""Distributions and truths of several targets, one target at a time; standard errors of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rdeepsense.distributions import AnyDistribution

Values = NDArray[np.generic]


def by_target(
    dist: AnyDistribution, y: Values, targets: Sequence[str]
) -> Iterator[tuple[str, AnyDistribution, Values]]:
    """Return the name, distribution and truth of each target."""
    if y.ndim == 1:
        yield targets[0], dist, y
        return
    for column, name in enumerate(targets):
        yield name, dist[:, column], y[:, column]


def standard_error(values: NDArray[np.float64], groups: Values | None = None) -> float | None:
    """Return that of the mean: std / sqrt(n) for independent rows, else between groups.

    With groups: sqrt(G / (G - 1) sum_g (sum of deviations in g)^2) / n.
    """
    import numpy as np

    deviation = values - values.mean()
    if groups is not None:
        deviation = np.bincount(np.unique(groups, return_inverse=True)[1], weights=deviation)
    count = len(deviation)
    if count < 2:
        return None
    return float(np.sqrt(count / (count - 1) * np.sum(deviation**2)) / len(values))
