"""All metrics at once."""

from __future__ import annotations

import numpy.typing as npt

from rdeepsense.distributions import AnyDistribution
from rdeepsense.metrics.checks import truth_of
from rdeepsense.metrics.classification import accuracy, brier, ece, f1, mefp
from rdeepsense.metrics.general import nll
from rdeepsense.metrics.regression import (
    calibration_curve,
    coverage,
    crps,
    curve_area,
    deviation_floor,
    interval_score,
    mae,
    rmse,
    sharpness,
)


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
