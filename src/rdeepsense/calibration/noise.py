"""Observation noise for Monte Carlo dropout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.calibration.base import Calibration, Weights, least
from rdeepsense.distributions import AnyDistribution, Gaussian


@dataclass(frozen=True)
class Noise(Calibration):
    """Gal's observation noise, which MC dropout lacks: var -> var + 1 / tau, one tau per output."""

    variance: Floats

    @classmethod
    def fit(
        cls,
        dist: AnyDistribution,
        y: NDArray[Any],
        weight: Weights = None,
        freedom: float | None = None,
    ) -> Self:
        """Find the noise variance of least NLL, output by output."""
        assert isinstance(dist, Gaussian)
        rows = len(y)
        mean, var, truth = (a.reshape(rows, -1) for a in (dist.mean, dist.var, np.asarray(y)))
        noise = np.empty(mean.shape[1])
        for k in range(mean.shape[1]):
            noise[k] = _noise((truth[:, k] - mean[:, k]) ** 2, var[:, k], weight)
        return cls(noise.reshape(mean.shape[1:] if dist.mean.ndim > 1 else ()))

    def apply(self, dist: AnyDistribution) -> Gaussian:
        assert isinstance(dist, Gaussian)
        return Gaussian(dist.mean, np.sqrt(dist.var + self.variance))

    def summary(self) -> float:
        return float(np.sqrt(np.mean(self.variance)))


def _noise(error: Floats, var: Floats, weight: Weights) -> float:
    """Find the s that makes N(0, var + s) most likely for errors of these squares."""
    largest = np.log(max(float(np.average(error, weights=weight)), 1e-300))

    def loss(log_noise: float) -> float:
        total = var + np.exp(log_noise)
        return float(np.average(np.log(total) + error / total, weights=weight))

    return float(np.exp(least(loss, (largest - 25.0, largest + 1.0))))
