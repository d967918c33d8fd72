"""The last step after training: one number, fitted on validation rows, that makes intervals honest.

The variance head learns the noise of the masks along with that of the data, and the single pass
removes the masks from the mean alone; so it overestimates, the more the higher the drop
probability. One scale by validation NLL takes that out. Few rows say little, so the number is
shrunk towards 1: log s <- log s * n / (n + 50).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian, StudentT
from rdeepsense.errors import InputError

PRIOR_ROWS = 50
Weights = NDArray[np.float64] | None


@dataclass(frozen=True)
class Scale:
    """Predicted standard deviations times one factor."""

    factor: float = 1.0

    @classmethod
    def fit(cls, dist: Gaussian | StudentT, y: NDArray[Any], weight: Weights = None) -> Scale:
        """The factor of least NLL; sqrt(mean z^2) for a Gaussian, a search for heavier tails."""
        if isinstance(dist, Gaussian):
            z2 = ((y - dist.mean) / dist.std) ** 2
            log_factor = 0.5 * np.log(max(_mean(z2, weight), 1e-12))
        else:
            log_factor = _least(lambda s: -_mean(dist.widened(np.exp(s)).log_prob(y), weight))
        return cls(_shrunk(log_factor, len(y)))

    def apply(self, dist: AnyDistribution) -> AnyDistribution:
        assert isinstance(dist, Gaussian | StudentT)
        return dist.widened(self.factor)


@dataclass(frozen=True)
class Temperature:
    """Probabilities to the power 1 / factor, renormalised."""

    factor: float = 1.0

    @classmethod
    def fit(cls, dist: Categorical, y: NDArray[Any], weight: Weights = None) -> Temperature:
        """The temperature of least NLL."""
        log_factor = _least(lambda s: -_mean(dist.tempered(np.exp(s)).log_prob(y), weight))
        return cls(_shrunk(log_factor, len(y)))

    def apply(self, dist: AnyDistribution) -> AnyDistribution:
        assert isinstance(dist, Categorical)
        return dist.tempered(self.factor)


Calibration = Scale | Temperature
KINDS: dict[str, type[Calibration]] = {"scale": Scale, "temperature": Temperature}


def kind_of(calibrate: bool | str, default: str) -> str | None:
    """The calibration that an estimator's `calibrate` argument names: True is the default one."""
    if calibrate is False:
        return None
    if calibrate is True or calibrate == default:
        return default
    raise InputError(
        f"calibrate = {calibrate!r} is unknown here; accepted: True, False, {default!r}"
    )


def _shrunk(log_factor: float, rows: int) -> float:
    return float(np.exp(log_factor * rows / (rows + PRIOR_ROWS)))


def _least(loss: Any) -> float:
    return float(minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded").x)


def _mean(values: NDArray[np.float64], weight: Weights) -> float:
    """The mean over rows and outputs, rows weighted."""
    return float(np.average(values.reshape(len(values), -1).mean(1), weights=weight))
