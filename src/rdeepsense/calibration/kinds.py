"""The last step after training: numbers fitted on validation rows that make intervals honest.

The variance head learns the noise of the masks along with that of the data, and the single pass
removes the masks from the mean alone; so it overestimates, the more the higher the drop
probability. One scale by validation NLL takes that out. Few rows say little, so the number is
shrunk towards 1: log s <- log s * n / (n + 50).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from rdeepsense import metrics
from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    Gaussian,
    LocationScale,
    Mixture,
    Recalibrated,
    concatenate,
)
from rdeepsense.errors import InputError

PRIOR_ROWS = 50
TINY = 1e-300
KNOTS = 33
Floats = NDArray[np.float64]
Weights = Floats | None


class Calibration:
    """A map from distributions to distributions, made of a few numbers."""

    @classmethod
    def fit(cls, dist: Any, y: NDArray[Any], weight: Weights = None) -> Self:
        """The numbers of least NLL on these rows."""
        raise NotImplementedError

    def apply(self, dist: AnyDistribution) -> AnyDistribution:
        raise NotImplementedError

    def summary(self) -> float:
        """The one number that says most."""
        raise NotImplementedError

    def arrays(self) -> dict[str, Floats]:
        """All numbers, by the names of the constructor's arguments; for a model file."""
        return {name: np.asarray(value, dtype=np.float64) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Scale(Calibration):
    """Everything about the mean times one factor: Y -> mean + factor (Y - mean)."""

    factor: float = 1.0

    @classmethod
    def fit(cls, dist: LocationScale | Mixture, y: NDArray[Any], weight: Weights = None) -> Self:
        """The factor of least NLL; sqrt(mean z^2) for a Gaussian, a search for other shapes."""
        if isinstance(dist, Gaussian):
            z2 = ((y - dist.mean) / dist.std) ** 2
            log_factor = 0.5 * np.log(max(_mean(z2, weight), 1e-12))
        else:
            log_factor = _least(lambda s: weighted_nll(_stretched(dist, np.exp(s)), y, weight))
        return cls(_shrunk(log_factor, len(y)))

    def apply(self, dist: AnyDistribution) -> AnyDistribution:
        assert not isinstance(dist, Categorical | Recalibrated)
        return _stretched(dist, self.factor)

    def summary(self) -> float:
        return self.factor


@dataclass(frozen=True)
class Temperature(Calibration):
    """Probabilities to the power 1 / factor, renormalised."""

    factor: float = 1.0

    @classmethod
    def fit(cls, dist: Categorical | Mixture, y: NDArray[Any], weight: Weights = None) -> Self:
        """The temperature of least NLL, with 50 rows' worth of belief in what was stated.

        Where every row is classified rightly the rows alone would ask for a temperature of 0, and
        the first error would then cost without bound.
        """
        pooled = _pooled(dist)
        rows, stated = len(y), pooled.probs

        def loss(log_factor: float) -> float:
            tempered = pooled.tempered(np.exp(log_factor))
            believed = -np.sum(stated * np.log(np.maximum(tempered.probs, TINY)), axis=-1)
            return rows * weighted_nll(tempered, y, weight) + PRIOR_ROWS * float(believed.mean())

        return cls(float(np.exp(_least(loss))))

    def apply(self, dist: AnyDistribution) -> Categorical:
        return _pooled(dist).tempered(self.factor)

    def summary(self) -> float:
        return self.factor


@dataclass(frozen=True)
class Noise(Calibration):
    """Gal's observation noise, which MC dropout lacks: var -> var + 1 / tau, one tau per output."""

    variance: Floats

    @classmethod
    def fit(cls, dist: Gaussian, y: NDArray[Any], weight: Weights = None) -> Self:
        """The noise variance of least NLL, output by output."""
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


@dataclass(frozen=True)
class Isotonic(Calibration):
    """Scale, then probabilities corrected to those observed (Kuleshov et al. 2018).

    The stated probability of being below y becomes the share of validation rows that were, at
    knots of equal distance, with 50 rows' worth of belief in the statement itself, so that the map
    rises everywhere.
    """

    factor: float
    stated: Floats
    actual: Floats

    @classmethod
    def fit(cls, dist: LocationScale | Mixture, y: NDArray[Any], weight: Weights = None) -> Self:
        scale = Scale.fit(dist, y, weight)
        pit = _stretched(dist, scale.factor).cdf(y).reshape(len(y), -1)
        stated = np.linspace(0, 1, KNOTS)
        weights = np.ones(len(y)) if weight is None else weight
        at = np.searchsorted(stated, pit)  # the first knot that is not below
        share = np.repeat(weights / weights.sum() / pit.shape[1], pit.shape[1])
        observed = np.cumsum(np.bincount(at.ravel(), share, KNOTS))
        actual = (len(y) * observed + PRIOR_ROWS * stated) / (len(y) + PRIOR_ROWS)
        actual[0], actual[-1] = 0.0, 1.0
        return cls(scale.factor, stated, actual)

    def apply(self, dist: AnyDistribution) -> Recalibrated:
        assert not isinstance(dist, Categorical | Recalibrated)
        return Recalibrated(_stretched(dist, self.factor), self.stated, self.actual)

    def summary(self) -> float:
        return self.factor


KINDS: dict[str, type[Calibration]] = {
    "scale": Scale,
    "isotonic": Isotonic,
    "temperature": Temperature,
    "noise": Noise,
}
CHOICES = {
    "scale": ("scale", "isotonic", "auto", "conformal"),
    "temperature": ("temperature", "conformal"),
}
FOLDS = 5
FEWEST_ROWS, MOST_VALUES = 500, 100_000  # that decide whether the shape is wrong


def fit(kind: str, dist: AnyDistribution, y: NDArray[Any], weight: Weights = None) -> Calibration:
    """A calibration by its name; "auto" is isotonic where a scale does not do."""
    if kind == "auto":
        kind = "isotonic" if _shape_is_wrong(dist, np.asarray(y), weight) else "scale"
    return KINDS[kind].fit(dist, y, weight)


def _shape_is_wrong(dist: AnyDistribution, y: NDArray[Any], weight: Weights) -> bool:
    """Whether a scale leaves a deviation area beyond chance, and the map does not cost NLL.

    Both are asked of rows that were left out in turn, of no more of them than the answer needs.
    Beyond chance is twice the floor, what a perfect model shows on average.
    """
    most = max(FEWEST_ROWS, MOST_VALUES * len(y) // max(y.size, 1))
    if len(y) > most:
        some = np.random.default_rng(0).choice(len(y), most, replace=False)
        dist, y, weight = dist[some], y[some], None if weight is None else weight[some]
    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    gain, scaled, order = np.empty(len(y)), [], []
    for f in range(FOLDS):
        inside, out = fold != f, fold == f
        w = None if weight is None else weight[inside]
        ways = [
            KINDS[kind].fit(dist[inside], y[inside], w).apply(dist[out])
            for kind in ("scale", "isotonic")
        ]
        nll = [-way.log_prob(y[out]).reshape(int(out.sum()), -1).mean(1) for way in ways]
        gain[out] = nll[0] - nll[1]
        scaled.append(ways[0])
        order.append(np.flatnonzero(out))
    area = metrics.deviation_area(concatenate(scaled), y[np.concatenate(order)])
    return area > 2 * metrics.deviation_floor(len(y)) and _mean(gain, weight) > 0


def kind_of(calibrate: bool | str, default: str) -> str | None:
    """The calibration that an estimator's `calibrate` argument names: True is the default one.

    "conformal" is the default one with rows set aside (`calibration.conformal`).
    """
    if calibrate is False:
        return None
    if calibrate is True or calibrate == "conformal":
        return default
    if calibrate in CHOICES[default]:
        return str(calibrate)
    accepted = ", ".join(map(repr, CHOICES[default]))
    raise InputError(
        f"calibrate = {calibrate!r} is unknown here; accepted: True, False, {accepted}"
    )


def weighted_nll(dist: AnyDistribution, y: NDArray[Any], weight: Weights = None) -> float:
    """The mean NLL over rows and outputs, rows weighted."""
    return -_mean(dist.log_prob(y), weight)


def _stretched(dist: LocationScale | Mixture, factor: float) -> LocationScale | Mixture:
    if isinstance(dist, Mixture):
        return dist.affine((1 - factor) * dist.mean, factor)
    return dist.widened(factor)


def _noise(error: Floats, var: Floats, weight: Weights) -> float:
    """The s that makes N(0, var + s) most likely for errors of these squares."""
    largest = np.log(max(float(np.average(error, weights=weight)), 1e-300))

    def loss(log_noise: float) -> float:
        total = var + np.exp(log_noise)
        return float(np.average(np.log(total) + error / total, weights=weight))

    return float(np.exp(_least(loss, (largest - 25.0, largest + 1.0))))


def _pooled(dist: AnyDistribution) -> Categorical:
    pooled = dist.moment_matched() if isinstance(dist, Mixture) else dist
    assert isinstance(pooled, Categorical)
    return pooled


def _shrunk(log_factor: float, rows: int) -> float:
    return float(np.exp(log_factor * rows / (rows + PRIOR_ROWS)))


def _least(loss: Callable[[float], float], bounds: tuple[float, float] = (-4.0, 4.0)) -> float:
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(found.x)


def _mean(values: Floats, weight: Weights) -> float:
    """The mean over rows and outputs, rows weighted."""
    return float(np.average(values.reshape(len(values), -1).mean(1), weights=weight))
