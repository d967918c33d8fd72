"""The interface of calibrations, and the searches that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from scipy.stats import t as student_t

from rdeepsense.arrays import Floats
from rdeepsense.distributions import AnyDistribution

PRIOR_ROWS = 50  # rows that the belief in what was stated counts as
Weights = Floats | None


class Calibration:
    """A map from distributions to distributions, made of a few numbers."""

    @classmethod
    def fit(
        cls,
        dist: AnyDistribution,
        y: NDArray[Any],
        weight: Weights = None,
        freedom: float | None = None,
    ) -> Self:
        """Find the numbers of least NLL on these rows.

        `freedom` is given where the whole table has few rows, whose predictions deserve no prior
        belief: the degrees of freedom of a scale, by which to widen it (`inflation`).
        """
        raise NotImplementedError

    def apply(self, dist: AnyDistribution) -> AnyDistribution:
        """Return the calibrated distribution."""
        raise NotImplementedError

    def summary(self) -> float:
        """Return the number that describes the calibration best."""
        raise NotImplementedError

    def arrays(self) -> dict[str, Floats]:
        """Return all numbers, by the names of the constructor's arguments; for a model file."""
        return {name: np.asarray(value, dtype=np.float64) for name, value in vars(self).items()}


def inflation(freedom: float) -> float:
    """Return by how much to widen 90 % intervals of a scale with so many degrees of freedom.

    It is t(0.95, f) / z(0.95), the quantile of a Student-t for that of the normal distribution.
    """
    return float(student_t.ppf(0.95, freedom) / norm.ppf(0.95))


def weighted_nll(dist: AnyDistribution, y: NDArray[Any], weight: Weights = None) -> float:
    """Return the mean NLL over rows and outputs, rows weighted."""
    return -weighted_mean(dist.log_prob(y), weight)


def weighted_mean(values: Floats, weight: Weights) -> float:
    """Return the mean over rows and outputs, rows weighted."""
    return float(np.average(values.reshape(len(values), -1).mean(1), weights=weight))


def least(loss: Callable[[float], float], bounds: tuple[float, float] = (-4.0, 4.0)) -> float:
    """Find where a function of one number is least, within bounds."""
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(found.x)
