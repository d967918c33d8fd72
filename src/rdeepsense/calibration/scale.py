"""One scale of the predicted spread.

The variance head learns the noise of the masks along with that of the data, and the single pass
removes the masks from the mean alone; so it overestimates, the more the higher the drop
probability. One scale by validation NLL takes that out. A few held-out rows of a larger table say
little, so the number is shrunk towards 1: log s <- log s * n / (n + 50).

Where the whole table has few rows, the spread that a network states deserves no such belief. The
scale is then that of least NLL, widened by what its degrees of freedom leave open (`inflation`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rdeepsense.calibration.base import (
    PRIOR_ROWS,
    Calibration,
    Weights,
    inflation,
    least,
    weighted_mean,
    weighted_nll,
)
from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    Gaussian,
    LocationScale,
    RegressionDistribution,
)


@dataclass(frozen=True)
class Scale(Calibration):
    """Everything about the mean times one factor: Y -> mean + factor (Y - mean)."""

    factor: float = 1.0

    @classmethod
    def fit(
        cls,
        dist: AnyDistribution,
        y: NDArray[Any],
        weight: Weights = None,
        freedom: float | None = None,
    ) -> Self:
        """Find the factor of least NLL: sqrt(mean z^2) for a Gaussian, else by a search.

        With `freedom` it is widened instead of shrunk.
        """
        continuous = _continuous(dist)
        if isinstance(dist, Gaussian):
            z2 = ((y - dist.mean) / dist.std) ** 2
            log_factor = 0.5 * np.log(max(weighted_mean(z2, weight), 1e-12))
        else:
            log_factor = least(lambda s: weighted_nll(stretched(continuous, np.exp(s)), y, weight))
        if freedom is not None:
            return cls(float(np.exp(log_factor)) * inflation(freedom))
        return cls(_shrunk(log_factor, len(y)))

    def apply(self, dist: AnyDistribution) -> AnyDistribution:
        return stretched(_continuous(dist), self.factor)

    def summary(self) -> float:
        return self.factor


def stretched(dist: RegressionDistribution, factor: float) -> RegressionDistribution:
    """Return the distribution with everything about its mean times one factor."""
    if isinstance(dist, LocationScale):
        return dist.widened(factor)
    return dist.affine((1 - factor) * dist.mean, factor)


def _continuous(dist: AnyDistribution) -> RegressionDistribution:
    assert not isinstance(dist, Categorical)
    return dist


def _shrunk(log_factor: float, rows: int) -> float:
    return float(np.exp(log_factor * rows / (rows + PRIOR_ROWS)))
