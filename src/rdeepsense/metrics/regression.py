"""Metrics of distributions over numbers, and of their calibration."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError
from rdeepsense.metrics.checks import as_regression, refuse_empty, truth_of
from rdeepsense.metrics.general import nll

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
