"""How good are predictive distributions? Pure functions of a distribution and the truth.

Every metric pools all entries (samples and outputs alike) into one float and refuses a truth of
another shape. `evaluate` gives all that apply, `per_output` one metric for each output.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt

from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    Distribution,
    Gaussian,
    Mixture,
    StudentT,
)
from rdeepsense.distributions.checks import Array, IntArray
from rdeepsense.errors import InputError

Metric = Callable[[AnyDistribution, npt.ArrayLike], float]

# The paper's levels (section 4.4): 90 % is not among them.
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.95, 0.99, 0.995, 0.999)


# --- any distribution ---------------------------------------------------------------------------


def nll(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Mean negative log-likelihood in nats, all constants included."""
    truth = _truth(dist, y)
    return float(-np.mean(dist.log_prob(truth)))


def evaluate(dist: AnyDistribution, y: npt.ArrayLike) -> dict[str, float]:
    """Every metric that applies, by name, and the number of entries `n`."""
    truth = _truth(dist, y)
    if dist.is_categorical:
        chosen = (accuracy, f1, nll, brier, ece, mefp)
        return {"n": truth.size} | {metric.__name__: metric(dist, truth) for metric in chosen}
    curve = calibration_curve(dist, truth)
    return {
        "n": truth.size,
        "mae": mae(dist, truth),
        "rmse": rmse(dist, truth),
        "nll": nll(dist, truth),
        "crps": crps(dist, truth),
        "deviation_area": float(curve_area(*curve, signed=False)),
        "deviation_area_signed": float(curve_area(*curve, signed=True)),
        "deviation_floor": deviation_floor(truth.size),
        **{f"coverage_{c}": coverage(dist, truth, c / 100) for c in (50, 80, 90, 95)},
        "interval_score_90": interval_score(dist, truth, 0.9),
        "sharpness": sharpness(dist),
    }


def per_output(metric: Metric, dist: AnyDistribution, y: npt.ArrayLike) -> Array:
    """`metric` for each output, where the first axis of `dist` and `y` holds the samples.

    The result has the shape of the other axes; a single output without an axis gives one number.
    """
    truth = _truth(dist, y)
    if truth.ndim == 0:
        raise InputError("per_output needs an axis of samples; got a distribution of one value")
    columns = [(slice(None), *output) for output in np.ndindex(truth.shape[1:])]
    values = [metric(dist[column], truth[column]) for column in columns]
    return np.array(values).reshape(truth.shape[1:] or (1,))


# --- regression ---------------------------------------------------------------------------------


def nll_paper(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """NLL in the paper's convention, which drops the constant log(2 pi) / 2 of each entry."""
    _regression("nll_paper", dist)
    return nll(dist, y) - 0.5 * float(np.log(2 * np.pi))


def crps(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Mean continuous ranked probability score, in the unit of y."""
    return float(np.mean(_regression("crps", dist).crps(_truth(dist, y))))


def mae(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Mean absolute error of the predicted mean."""
    return float(np.mean(np.abs(_regression("mae", dist).mean - _truth(dist, y))))


def rmse(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Root of the mean squared error of the predicted mean."""
    return float(np.sqrt(np.mean((_regression("rmse", dist).mean - _truth(dist, y)) ** 2)))


def sharpness(dist: AnyDistribution, y: npt.ArrayLike | None = None) -> float:
    """Mean predicted standard deviation.

    The truth plays no part; it may be given so that all metrics are called alike.
    """
    std = _regression("sharpness", dist).std
    _refuse_empty(dist)
    return float(np.mean(std))


def interval_score(dist: AnyDistribution, y: npt.ArrayLike, level: float) -> float:
    """Winkler score of the central interval: width + 2 / (1 - level) times the miss, averaged."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, both excluded; got {level}")
    truth = _truth(dist, y)
    low, high = _regression("interval_score", dist).interval(level)
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return float(np.mean(high - low + 2 / (1 - level) * miss))


def coverage(dist: AnyDistribution, y: npt.ArrayLike, level: float) -> float:
    """Share of the truth inside the central interval of this level."""
    return float(calibration_curve(dist, y, (level,))[1][0])


def calibration_curve(
    dist: AnyDistribution, y: npt.ArrayLike, levels: npt.ArrayLike = LEVELS
) -> tuple[Array, Array]:
    """(levels, observed): the share of the truth inside the central interval of each level."""
    asked = np.array(levels, dtype=np.float64, ndmin=1)
    if not np.all((asked >= 0) & (asked <= 1)):
        raise InputError(f"levels must lie between 0 and 1; got {asked.tolist()}")
    reached = np.sort(_central_level(dist, y), axis=None)
    return asked, np.searchsorted(reached, asked, side="right") / reached.size


def deviation_area(dist: AnyDistribution, y: npt.ArrayLike, signed: bool = False) -> float:
    """Area between the calibration curve and the diagonal, from 0 to 0.5 (section 4.5).

    The curve runs straight from (0, 0) through the observed coverage at LEVELS to (1, 1).
    Signed, it is the integral of observed - level: positive where intervals are too wide,
    negative where they are too narrow. Even a perfect model stays above `deviation_floor`
    on average, and predicting the marginal distribution of y for every sample is perfectly
    calibrated too: read it beside NLL and sharpness.
    """
    return float(curve_area(*calibration_curve(dist, y), signed=signed))


@lru_cache(maxsize=1024)
def deviation_floor(n: int) -> float:
    """Deviation area that a perfect model is expected to have with n independent entries.

    The counts between neighbouring levels are then multinomial: 20,000 draws from a fixed seed
    give the mean to about 0.3 %, at a cost that does not depend on n.
    """
    try:
        entries = operator.index(n)
    except TypeError:
        raise InputError(f"n must be an integer; got {n!r}") from None
    if entries < 1:
        raise InputError(f"n must be 1 or greater; got {n}")
    between_levels = np.diff([0.0, *LEVELS, 1.0])
    counts = np.random.default_rng(0).multinomial(entries, between_levels, size=20_000)
    observed = counts.cumsum(axis=1)[:, :-1] / entries
    return float(np.mean(curve_area(np.array(LEVELS), observed, signed=False)))


def _central_level(dist: AnyDistribution, y: npt.ArrayLike) -> Array:
    """Level of the smallest central interval that reaches the truth: |2 F(y) - 1|.

    It is off by 1e-16 at most, in either tail: the distance of neighbouring levels next to 1.
    """
    truth = _truth(dist, y)
    return np.abs(2 * _regression("calibration", dist).cdf(truth) - 1)


def curve_area(levels: Array, observed: Array, signed: bool) -> Array:
    """Trapezoids between curve and diagonal along the last axis, (0, 0) and (1, 1) added.

    Where the curve crosses the diagonal between two levels, the trapezoid is two triangles
    whose widths are as their heights a and b: (a^2 + b^2) / (2 (a + b)) of the full width.
    """
    width = np.diff(levels, prepend=0.0, append=1.0)
    ends = np.zeros((*observed.shape[:-1], 1))
    gap = np.concatenate([ends, observed - levels, ends], axis=-1)
    start, end = gap[..., :-1], gap[..., 1:]
    if signed:
        return cast(Array, np.sum(width * (start + end) / 2, axis=-1))
    total = np.abs(start) + np.abs(end)
    crossing = start * end < 0
    squares = np.divide(start**2 + end**2, total, out=np.zeros_like(total), where=crossing)
    return cast(Array, np.sum(width * np.where(crossing, squares, total) / 2, axis=-1))


# --- classification -----------------------------------------------------------------------------


def accuracy(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Share of entries whose most probable class is the true one."""
    predicted, truth = _predicted_and_true("accuracy", dist, y)
    return float(np.mean(predicted == truth))


def f1(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Macro F1: the plain mean of 2 TP / (2 TP + FP + FN) over classes predicted or true."""
    predicted, truth = _predicted_and_true("f1", dist, y)
    scores = [
        2 * np.sum((predicted == c) & (truth == c)) / (np.sum(predicted == c) + np.sum(truth == c))
        for c in np.union1d(predicted, truth)
    ]
    return float(np.mean(scores))


def brier(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Squared error of the probabilities, summed over classes (from 0 to 2), averaged."""
    probs = _classification("brier", dist).probs
    true_class = np.arange(probs.shape[-1]) == _truth(dist, y)[..., None]
    return float(np.mean(np.sum((probs - true_class) ** 2, axis=-1)))


def ece(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Expected calibration error: mean |accuracy - confidence| over 15 bins of the top class.

    Bins are of equal width, closed below and open above, each weighted by its share of the
    entries; a confidence of exactly 1 has a bin of its own, as in torchmetrics.
    """
    predicted, truth = _predicted_and_true("ece", dist, y)
    confidence = _classification("ece", dist).probs.max(axis=-1).ravel()
    chosen_bin = np.searchsorted(np.linspace(0, 1, 16), confidence, side="right")
    excess = np.bincount(chosen_bin, weights=(predicted == truth).ravel() - confidence)
    return float(np.sum(np.abs(excess)) / truth.size)


def mefp(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Mean entropy of the false predictions in nats, NaN where there are none (section 4.4).

    At most log(number of classes), which uniform guesses reach: never choose a model by it.
    """
    predicted, truth = _predicted_and_true("mefp", dist, y)
    wrong = predicted != truth
    entropy = np.asarray(_classification("mefp", dist).entropy())
    return float(np.mean(entropy[wrong])) if wrong.any() else float("nan")


def _predicted_and_true(
    metric: str, dist: AnyDistribution, y: npt.ArrayLike
) -> tuple[IntArray, Array]:
    return _classification(metric, dist).mode, _truth(dist, y)


# --- what may enter -----------------------------------------------------------------------------


def _over_classes(dist: AnyDistribution) -> bool:
    if not isinstance(dist, Distribution):
        raise InputError(f"dist must be a distribution of this package; got {type(dist).__name__}")
    return dist.is_categorical


def _regression(metric: str, dist: AnyDistribution) -> Gaussian | StudentT | Mixture:
    if _over_classes(dist):
        raise InputError(f"{metric} is for regression; got {dist!r}, a distribution over classes")
    return cast(Gaussian | StudentT | Mixture, dist)


def _classification(metric: str, dist: AnyDistribution) -> Categorical:
    if not _over_classes(dist):
        raise InputError(f"{metric} is for classification; got {dist!r}, which has no classes")
    return cast(Categorical, dist.moment_matched() if isinstance(dist, Mixture) else dist)


def _refuse_empty(dist: AnyDistribution) -> None:
    if 0 in dist.shape:
        raise InputError(f"a metric needs at least one entry; got shape {dist.shape}")


def _truth(dist: AnyDistribution, y: npt.ArrayLike) -> Array:
    """The truth as an array of the distribution's own shape: finite, class indices for classes."""
    over_classes = _over_classes(dist)
    try:
        truth = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"y must be an array of numbers; {error}") from error
    if truth.shape != dist.shape:
        raise InputError(f"y and dist must have the same shape; got {truth.shape} and {dist.shape}")
    _refuse_empty(dist)
    if not np.all(np.isfinite(truth)):
        bad = np.flatnonzero(~np.isfinite(truth))
        raise InputError(f"y must be finite; got {truth.flat[bad[0]]} ({bad.size} not finite)")
    if over_classes:
        _refuse_unknown_classes(truth, dist.mean.shape[-1])
    return truth


def _refuse_unknown_classes(truth: Array, classes: int) -> None:
    unknown = (truth < 0) | (truth >= classes) | (truth != np.floor(truth))
    if unknown.any():
        raise InputError(
            f"y must be class indices from 0 to {classes - 1}; got {truth[unknown].flat[0]}"
        )
