"""Calibration maps, fitted on held-out rows: scale, added noise, isotonic, temperature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from scipy.stats import t as student_t

from rdeepsense import metrics
from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    Gaussian,
    LocationScale,
    Mixture,
    Recalibrated,
    RegressionDistribution,
    concatenate,
)
from rdeepsense.errors import InputError
from rdeepsense.modelfile.layout import Context, Layout, Numbers, length

# --------------------------------------------------------------------------------------------------
# The interface of calibrations, and shared searches
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Observation noise for Monte Carlo dropout
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# A scale of the predicted standard deviation
#
# The variance head learns the noise of the masks along with that of the data, and the single pass
# removes the masks from the mean alone; so it overestimates, the more the higher the drop
# probability. One scale by validation NLL takes that out. A few held-out rows of a larger table say
# little, so the number is shrunk towards 1: log s <- log s * n / (n + 50).
#
# Where the whole table has few rows, the spread that a network states deserves no such belief. The
# scale is then that of least NLL, widened by what its degrees of freedom leave open (`inflation`).
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# An isotonic map of the predicted probabilities
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# A temperature of the predicted probabilities
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Calibrations by name, and the choice between them
# --------------------------------------------------------------------------------------------------

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


def fit(
    kind: str,
    dist: AnyDistribution,
    y: NDArray[Any],
    weight: Weights = None,
    groups: NDArray[Any] | None = None,
    freedom: float | None = None,
) -> Calibration:
    """Fit a calibration by its name; "auto" is isotonic where a scale is not enough.

    With `groups` that is judged on groups to which neither was fitted. `freedom` is given where
    rows or groups are few (`Calibration.fit`); few rows cannot tell that a scale is not enough.
    """
    if kind == "auto":
        can_tell = freedom is None or groups is not None
        wrong = can_tell and _shape_is_wrong(dist, np.asarray(y), weight, groups)
        kind = "isotonic" if wrong else "scale"
    return KINDS[kind].fit(dist, y, weight, freedom)


def name_of(calibration: Calibration | None) -> str | None:
    """Return the name that a file has for a kind of calibration."""
    if calibration is None:
        return None
    return next(name for name, kind in KINDS.items() if type(calibration) is kind)


def restored(kind: str | None, arrays: Mapping[str, NDArray[Any]]) -> Calibration | None:
    """Build the calibration that a checked file holds, from its `arrays`."""
    if kind is None:
        return None
    return KINDS[kind](**{k: v.item() if v.ndim == 0 else v for k, v in arrays.items()})


def layout(at: str, kind: str | None, context: Context) -> Layout:
    """Name the tensors of a calibration in a file, which begin with `at`."""
    target = context.header["target"]
    head = context.header.get("architecture", {}).get("likelihood")
    fits = kind is None or (kind == "temperature") == context.is_classes
    if not fits or (kind == "noise" and head != "point"):
        raise InputError(f"{at} = {kind} does not fit the target and the head")
    if kind in ("scale", "isotonic", "temperature"):
        most = 1e6 if kind == "temperature" else 1e100
        yield f"{at}.factor", Numbers((), 1 / most, most)
    if kind == "isotonic":
        knots = (length(context.shapes, f"{at}.stated"),)
        yield f"{at}.stated", Numbers(knots, 0.0, 1.0)
        yield f"{at}.actual", Numbers(knots, 0.0, 1.0)
    if kind == "noise":
        yield f"{at}.variance", Numbers(tuple(target["shape"]), 0.0, 1e308)


def check_knots(at: str, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Refuse the knots of a map that do not rise from 0 to 1."""
    for name, array in tensors.items():
        if not name.startswith(f"{at}.") or not name.endswith((".stated", ".actual")):
            continue
        if len(array) < 2 or array[0] != 0 or array[-1] != 1 or not (np.diff(array) > 0).all():
            raise InputError(f"{name} does not rise from 0 to 1")


def _shape_is_wrong(
    dist: AnyDistribution, y: NDArray[Any], weight: Weights, groups: NDArray[Any] | None
) -> bool:
    """Tell whether a scale leaves a deviation area beyond chance, and the map does not cost NLL.

    Both are cross-validated, on no more rows than the answer needs. Beyond chance is more than
    twice the deviation floor, the average of a perfect model.
    """
    if len(y) < 2 * FOLDS:  # so few cannot tell
        return False
    most = max(FEWEST_ROWS, MOST_VALUES * len(y) // max(y.size, 1))
    if len(y) > most:
        some = np.random.default_rng(0).choice(len(y), most, replace=False)
        dist, y, weight = dist[some], y[some], None if weight is None else weight[some]
        groups = None if groups is None else groups[some]
    fold = _folds(len(y), groups)
    gain, scaled, order = np.empty(len(y)), [], []
    for f in range(int(fold.max()) + 1):
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
    return area > 2 * metrics.deviation_floor(len(y)) and weighted_mean(gain, weight) > 0


def _folds(rows: int, groups: NDArray[Any] | None) -> Integers:
    """Return the fold of each row; groups are whole."""
    if groups is None:
        drawn: Integers = np.random.default_rng(0).permutation(rows) % FOLDS
        return drawn
    number = np.unique(groups, return_inverse=True)[1]
    found: Integers = np.random.default_rng(0).permutation(int(number.max()) + 1)[number] % FOLDS
    return found


def kind_of(calibrate: bool | str, default: str) -> str | None:
    """Return the calibration that an estimator's `calibrate` argument names; True is the default.

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
