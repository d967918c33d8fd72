"""Scores of predictive distributions: regression, classification, selective prediction."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import (
    AnyDistribution,
    Categorical,
    Distribution,
    LocationScale,
    Mixture,
)
from rdeepsense.distributions.base import finite, floats
from rdeepsense.errors import InputError

# --------------------------------------------------------------------------------------------------
# Checks of the arguments of metrics
# --------------------------------------------------------------------------------------------------


def over_classes(dist: AnyDistribution) -> bool:
    if not isinstance(dist, Distribution):
        raise InputError(f"dist must be a distribution of this package; got {type(dist).__name__}")
    return dist.is_categorical


def as_regression(metric: str, dist: AnyDistribution) -> LocationScale | Mixture:
    if over_classes(dist):
        raise InputError(f"{metric} is for regression; got {dist!r}, a distribution over classes")
    return cast(LocationScale | Mixture, dist)


def as_classes(metric: str, dist: AnyDistribution) -> Categorical:
    if not over_classes(dist):
        raise InputError(f"{metric} is for classification; got {dist!r}, which has no classes")
    return cast(Categorical, dist.moment_matched() if isinstance(dist, Mixture) else dist)


def refuse_empty(dist: AnyDistribution) -> None:
    if 0 in dist.shape:
        raise InputError(f"a metric needs at least one entry; got shape {dist.shape}")


def truth_of(dist: AnyDistribution, y: npt.ArrayLike) -> Floats | Integers:
    """Check the truth: finite, of the distribution's shape; labels become class indices."""
    classes = over_classes(dist)
    try:
        truth = np.asarray(y) if classes else np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"y must be an array of numbers; {error}") from error
    if truth.shape != dist.shape:
        raise InputError(f"y and dist must have the same shape; got {truth.shape} and {dist.shape}")
    refuse_empty(dist)
    if classes:
        return as_classes("a class", dist).encode(truth)
    if not np.all(np.isfinite(truth)):
        bad = np.flatnonzero(~np.isfinite(truth))
        raise InputError(f"y must be finite; got {truth.flat[bad[0]]} ({bad.size} not finite)")
    return truth


# --------------------------------------------------------------------------------------------------
# Metrics of classification
# --------------------------------------------------------------------------------------------------


def accuracy(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the share of entries whose most probable class is the true one."""
    predicted, truth = _predicted_and_true("accuracy", dist, y)
    return float(np.mean(predicted == truth))


def f1(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return macro F1: the plain mean of 2 TP / (2 TP + FP + FN) over the classes that occur in y.

    A class without a row is not judged: it would count as 0, however small the error.
    """
    predicted, truth = _predicted_and_true("f1", dist, y)
    scores = [
        2 * np.sum((predicted == c) & (truth == c)) / (np.sum(predicted == c) + np.sum(truth == c))
        for c in np.unique(truth)
    ]
    return float(np.mean(scores))


def brier(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the mean squared error of the probabilities, summed over classes (from 0 to 2)."""
    probs = as_classes("brier", dist).probs
    true_class = np.arange(probs.shape[-1]) == truth_of(dist, y)[..., None]
    return float(np.mean(np.sum((probs - true_class) ** 2, axis=-1)))


ECE_BINS = 15


def ece(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the expected calibration error: mean |accuracy - confidence| over 15 bins.

    Bins of the top class's confidence are of equal width, closed below and open above, each
    weighted by its share of the entries; a confidence of exactly 1 has a separate bin, as in
    torchmetrics.
    """
    predicted, truth = _predicted_and_true("ece", dist, y)
    confidence = as_classes("ece", dist).probs.max(axis=-1).ravel()
    chosen_bin = np.searchsorted(np.linspace(0, 1, ECE_BINS + 1), confidence, side="right")
    excess = np.bincount(chosen_bin, weights=(predicted == truth).ravel() - confidence)
    return float(np.sum(np.abs(excess)) / truth.size)


def mefp(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the mean entropy of false predictions in nats, NaN where there are none (section 4.4).

    At most log(number of classes), which uniform guesses reach: never choose a model by it.
    """
    predicted, truth = _predicted_and_true("mefp", dist, y)
    wrong = predicted != truth
    entropy = np.asarray(as_classes("mefp", dist).entropy())
    return float(np.mean(entropy[wrong])) if wrong.any() else float("nan")


def _predicted_and_true(
    metric: str, dist: AnyDistribution, y: npt.ArrayLike
) -> tuple[Integers, Floats | Integers]:
    return as_classes(metric, dist).mode, truth_of(dist, y)


# --------------------------------------------------------------------------------------------------
# Metrics of any distribution
# --------------------------------------------------------------------------------------------------

Metric = Callable[[AnyDistribution, npt.ArrayLike], float]


def nll(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the mean negative log-likelihood in nats, all constants included."""
    truth = truth_of(dist, y)
    return float(-np.mean(dist.log_prob(truth)))


def per_output(metric: Metric, dist: AnyDistribution, y: npt.ArrayLike) -> Floats:
    """Return `metric` for each output, where the first axis of `dist` and `y` holds the samples.

    The result has the shape of the other axes; a single output without an axis gives one number.
    """
    truth = truth_of(dist, y)
    if truth.ndim == 0:
        raise InputError("per_output needs an axis of samples; got a distribution of one value")
    columns = [(slice(None), *output) for output in np.ndindex(truth.shape[1:])]
    # The truth as it was given: a metric encodes labels itself.
    values = [metric(dist[column], np.asarray(y)[column]) for column in columns]
    return np.array(values).reshape(truth.shape[1:] or (1,))


# --------------------------------------------------------------------------------------------------
# Metrics of regression, and of its calibration
# --------------------------------------------------------------------------------------------------

# The paper's levels (section 4.4): 90 % is not among them.
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.95, 0.99, 0.995, 0.999)


def nll_paper(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the NLL as the paper has it, without the constant log(2 pi) / 2 of each entry."""
    as_regression("nll_paper", dist)
    return nll(dist, y) - 0.5 * float(np.log(2 * np.pi))


def crps(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the mean continuous ranked probability score, in the unit of y."""
    return float(np.mean(as_regression("crps", dist).crps(truth_of(dist, y))))


def mae(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the mean absolute error of the predicted mean."""
    return float(np.mean(np.abs(as_regression("mae", dist).mean - truth_of(dist, y))))


def rmse(dist: AnyDistribution, y: npt.ArrayLike) -> float:
    """Return the root of the mean squared error of the predicted mean."""
    return float(np.sqrt(np.mean((as_regression("rmse", dist).mean - truth_of(dist, y)) ** 2)))


def sharpness(dist: AnyDistribution, y: npt.ArrayLike | None = None) -> float:
    """Return the mean predicted standard deviation.

    The truth plays no part; it may be given so that all metrics are called alike.
    """
    std = as_regression("sharpness", dist).std
    refuse_empty(dist)
    return float(np.mean(std))


def interval_score(dist: AnyDistribution, y: npt.ArrayLike, level: float) -> float:
    """Return the Winkler score of the central interval: width + 2 / (1 - level) times the miss."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, both excluded; got {level}")
    truth = truth_of(dist, y)
    low, high = as_regression("interval_score", dist).interval(level)
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return float(np.mean(high - low + 2 / (1 - level) * miss))


def coverage(dist: AnyDistribution, y: npt.ArrayLike, level: float) -> float:
    """Return the share of the truth inside the central interval of this level."""
    return float(calibration_curve(dist, y, (level,))[1][0])


def calibration_curve(
    dist: AnyDistribution, y: npt.ArrayLike, levels: npt.ArrayLike = LEVELS
) -> tuple[Floats, Floats]:
    """Return (levels, observed): the share of truth inside the central interval of each level."""
    asked = np.array(levels, dtype=np.float64, ndmin=1)
    if not np.all((asked >= 0) & (asked <= 1)):
        raise InputError(f"levels must lie between 0 and 1; got {asked.tolist()}")
    reached = np.sort(_central_level(dist, y), axis=None)
    return asked, np.searchsorted(reached, asked, side="right") / reached.size


def deviation_area(dist: AnyDistribution, y: npt.ArrayLike, signed: bool = False) -> float:
    """Return the area between calibration curve and diagonal, from 0 to 0.5 (section 4.5).

    The curve runs straight from (0, 0) through the observed coverage at LEVELS to (1, 1).
    Signed, it is the integral of observed - level: positive where intervals are too wide,
    negative where they are too narrow. Even a perfect model stays above `deviation_floor`
    on average, and predicting the marginal distribution of y for every sample is perfectly
    calibrated too: read it beside NLL and sharpness.
    """
    return float(curve_area(*calibration_curve(dist, y), signed=signed))


@lru_cache(maxsize=1024)
def deviation_floor(n: int) -> float:
    """Return the expected deviation area of a perfect model on n independent entries.

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


def _central_level(dist: AnyDistribution, y: npt.ArrayLike) -> Floats:
    """Return the level of the smallest central interval that reaches the truth: |2 F(y) - 1|.

    It is off by 1e-16 at most, in either tail: the distance of neighbouring levels next to 1.
    """
    truth = truth_of(dist, y)
    return np.abs(2 * as_regression("calibration", dist).cdf(truth) - 1)


def curve_area(levels: Floats, observed: Floats, signed: bool) -> Floats:
    """Sum trapezoids between curve and diagonal along the last axis, (0, 0) and (1, 1) added.

    Where the curve crosses the diagonal between two levels, the trapezoid is two triangles
    whose widths are as their heights a and b: (a^2 + b^2) / (2 (a + b)) of the full width.
    """
    width = np.diff(levels, prepend=0.0, append=1.0)
    ends = np.zeros((*observed.shape[:-1], 1))
    gap = np.concatenate([ends, observed - levels, ends], axis=-1)
    start, end = gap[..., :-1], gap[..., 1:]
    if signed:
        return cast(Floats, np.sum(width * (start + end) / 2, axis=-1))
    total = np.abs(start) + np.abs(end)
    crossing = start * end < 0
    squares = np.divide(start**2 + end**2, total, out=np.zeros_like(total), where=crossing)
    return cast(Floats, np.sum(width * np.where(crossing, squares, total) / 2, axis=-1))


# --------------------------------------------------------------------------------------------------
# Metrics of scores that reject rows or separate two kinds of rows
#
# A score is one number per row, larger where a model is less sure. The area under the risk-coverage
# curve judges it by the losses of the rows kept (Geifman & El-Yaniv 2017), the AUROC by how well it
# separates rows of one kind from rows of another.
# --------------------------------------------------------------------------------------------------


def risk_coverage(score: npt.ArrayLike, loss: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return (coverage, risk): the mean loss of the rows kept as the highest scores are refused.

    One point for each distinct score, from the smallest to all rows (coverage 1): rows of equal
    score are kept or refused together.
    """
    scores, losses = _rows("score", score), _rows("loss", loss)
    if scores.shape != losses.shape:
        raise InputError(
            f"score and loss must have one number per row; got {scores.shape} and {losses.shape}"
        )
    order = np.argsort(scores, kind="stable")
    kept = np.arange(1, len(order) + 1)
    risk = np.cumsum(losses[order]) / kept
    ends = np.flatnonzero(np.append(np.diff(scores[order]) > 0, True))
    return kept[ends] / len(order), risk[ends]


def aurc(score: npt.ArrayLike, loss: npt.ArrayLike) -> float:
    """Return the area under the risk-coverage curve: the mean risk over 1 to n rows kept.

    Lower is better; an uninformative score gives about the mean loss. Where scores are equal,
    the curve is that of their rows in an average order: their losses come in one by one, each the
    mean of them all.
    """
    coverage, risk = risk_coverage(score, loss)
    count = _rows("loss", loss).size
    kept = np.rint(coverage * count).astype(np.intp)
    total = np.append(0.0, risk * kept)
    running = np.interp(np.arange(1, count + 1), np.append(0, kept), total)
    return float(np.mean(running / np.arange(1, count + 1)))


def auroc(score_in: npt.ArrayLike, score_out: npt.ArrayLike) -> float:
    """Return the probability that a row of `score_out` scores above one of `score_in`, ties half.

    1 tells them apart perfectly, 0.5 not at all, 0 perfectly the wrong way round. Exact.
    """
    inside, outside = np.sort(_rows("score_in", score_in)), _rows("score_out", score_out)
    below, up_to = (np.searchsorted(inside, outside, side) for side in ("left", "right"))
    return float(np.mean(below + up_to) / (2 * len(inside)))


def _rows(name: str, value: npt.ArrayLike) -> Floats:
    values = floats(name, value)
    if values.ndim != 1 or not values.size:
        raise InputError(f"{name} must have one number for each of its rows; got {values.shape}")
    return finite(name, values)


# --------------------------------------------------------------------------------------------------
# All metrics at once
# --------------------------------------------------------------------------------------------------


def evaluate(dist: AnyDistribution, y: npt.ArrayLike) -> dict[str, float]:
    """Return every metric that applies, by name, and the number of entries `n`.

    Of classes, `y` are labels where the distribution has them (`Categorical.classes`), as those of
    `predict_dist` do, and else class indices.
    """
    truth = truth_of(dist, y)
    if dist.is_categorical:
        chosen = (accuracy, f1, nll, brier, ece, mefp)
        return {"n": truth.size} | {metric.__name__: metric(dist, y) for metric in chosen}
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
