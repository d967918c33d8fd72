"""Metrics of predictive distributions: pure functions of a distribution and the truth.

Every metric of a distribution pools all entries (samples and outputs alike) into one float and
refuses a truth of another shape. The truth of classes is labels where the distribution has them,
else class indices. `evaluate` gives all that apply, `per_output` one metric for each
output. `risk_coverage`, `aurc` and `auroc` judge a score, one number per row.
"""

from __future__ import annotations

from rdeepsense.metrics.scores import (
    LEVELS,
    Metric,
    accuracy,
    aurc,
    auroc,
    brier,
    calibration_curve,
    coverage,
    crps,
    curve_area,
    deviation_area,
    deviation_floor,
    ece,
    evaluate,
    f1,
    interval_score,
    mae,
    mefp,
    nll,
    nll_paper,
    per_output,
    risk_coverage,
    rmse,
    sharpness,
)

__all__ = [
    "LEVELS",
    "Metric",
    "accuracy",
    "aurc",
    "auroc",
    "brier",
    "calibration_curve",
    "coverage",
    "crps",
    "curve_area",
    "deviation_area",
    "deviation_floor",
    "ece",
    "evaluate",
    "f1",
    "interval_score",
    "mae",
    "mefp",
    "nll",
    "nll_paper",
    "per_output",
    "risk_coverage",
    "rmse",
    "sharpness",
]
