"""One temperature of the predicted probabilities."""

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
    weighted_nll,
)
from rdeepsense.distributions import AnyDistribution, Categorical, Mixture

TINY = 1e-300


@dataclass(frozen=True)
class Temperature(Calibration):
    """Probabilities to the power 1 / factor, renormalised."""

    factor: float = 1.0

    @classmethod
    def fit(
        cls,
        dist: AnyDistribution,
        y: NDArray[Any],
        weight: Weights = None,
        freedom: float | None = None,
    ) -> Self:
        """Find the temperature of least NLL, with 50 rows' worth of belief in what was stated.

        Where every row is classified correctly, the rows alone would ask for a temperature of 0,
        and the first error would then cost without bound. With `freedom` there is no such belief,
        the temperature is 1 at least, and it is widened.
        """
        pooled = _pooled(dist)
        rows, stated = len(y), pooled.probs

        def loss(log_factor: float) -> float:
            tempered = pooled.tempered(np.exp(log_factor))
            believed = -np.sum(stated * np.log(np.maximum(tempered.probs, TINY)), axis=-1)
            return rows * weighted_nll(tempered, y, weight) + PRIOR_ROWS * float(believed.mean())

        if freedom is not None:
            found = least(lambda s: weighted_nll(pooled.tempered(np.exp(s)), y, weight), (0.0, 4.0))
            return cls(float(np.exp(found)) * inflation(freedom))
        return cls(float(np.exp(least(loss))))

    def apply(self, dist: AnyDistribution) -> Categorical:
        return _pooled(dist).tempered(self.factor)

    def summary(self) -> float:
        return self.factor


def _pooled(dist: AnyDistribution) -> Categorical:
    pooled = dist.moment_matched() if isinstance(dist, Mixture) else dist
    assert isinstance(pooled, Categorical)
    return pooled
