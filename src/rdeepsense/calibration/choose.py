"""Calibrations by name, and the choice between a scale and a map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense.arrays import Integers
from rdeepsense.calibration.base import Calibration, Weights, weighted_mean
from rdeepsense.calibration.isotonic import Isotonic
from rdeepsense.calibration.noise import Noise
from rdeepsense.calibration.scale import Scale
from rdeepsense.calibration.temperature import Temperature
from rdeepsense.distributions import AnyDistribution, concatenate
from rdeepsense.errors import InputError

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
