"""A monotone map of the predicted probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.calibration.base import PRIOR_ROWS, Calibration, Weights
from rdeepsense.calibration.scale import Scale, stretched
from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    Recalibrated,
)

KNOTS = 33


@dataclass(frozen=True)
class Isotonic(Calibration):
    """A scale, then probabilities corrected to those observed (Kuleshov et al. 2018).

    The stated probability of being below y becomes the share of validation rows that were, at
    knots of equal distance, with 50 rows' worth of belief in the statement itself, so that the map
    rises everywhere.
    """

    factor: float
    stated: Floats
    actual: Floats

    @classmethod
    def fit(
        cls,
        dist: AnyDistribution,
        y: NDArray[Any],
        weight: Weights = None,
        freedom: float | None = None,
    ) -> Self:
        """Find the scale, then the share of rows below the stated quantile at each knot."""
        scale = Scale.fit(dist, y, weight, freedom)
        pit = scale.apply(dist).cdf(y).reshape(len(y), -1)
        stated = np.linspace(0, 1, KNOTS)
        weights = np.ones(len(y)) if weight is None else weight
        at = np.searchsorted(stated, pit)  # the first knot that is not below
        share = np.repeat(weights / weights.sum() / pit.shape[1], pit.shape[1])
        observed = np.cumsum(np.bincount(at.ravel(), share, KNOTS))
        actual = (len(y) * observed + PRIOR_ROWS * stated) / (len(y) + PRIOR_ROWS)
        actual[0], actual[-1] = 0.0, 1.0
        return cls(scale.factor, stated, actual)

    def apply(self, dist: AnyDistribution) -> Recalibrated:
        assert not isinstance(dist, Categorical)
        base = stretched(dist, self.factor)
        assert not isinstance(base, Recalibrated)
        return Recalibrated(base, self.stated, self.actual)

    def summary(self) -> float:
        return self.factor
