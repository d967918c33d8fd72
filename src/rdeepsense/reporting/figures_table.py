"""The figures of one target on labelled rows, with their errors and what they should be."""

from __future__ import annotations

import math

from rdeepsense import metrics
from rdeepsense.arrays import Floats
from rdeepsense.experiments.text_table import TextTable
from rdeepsense.reporting.per_target import standard_error
from rdeepsense.reporting.subject import Subject

NUMBERS = {
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "nll": "negative log-likelihood (nats)",
    "crps": "CRPS",
    "coverage_90": "coverage of 90 % intervals",
    "sharpness": "mean stated standard deviation",
    "deviation_area": "deviation area",
}
CLASSES = {
    "accuracy": "accuracy",
    "f1": "F1, mean over classes",
    "nll": "negative log-likelihood (nats)",
    "brier": "Brier score (0 to 2)",
    "ece": "expected calibration error",
}
IN_UNITS = ("mae", "rmse", "crps", "sharpness")
SHARES = ("coverage_90", "accuracy")


def figures_table(subject: Subject) -> TextTable:
    """Return a line for each figure."""
    found = metrics.evaluate(subject.dist, subject.y)
    rows: dict[str, Floats] = {"nll": subject.nll}
    rows |= {"mae": subject.loss, "coverage_90": subject.held.astype(float)}
    rows["accuracy"] = rows["coverage_90"]
    ideal = {"coverage_90": "90 %", "accuracy": f"{100 * subject.stated.mean():.1f} % is stated"}
    if not subject.is_classes:
        ideal["deviation_area"] = f"{found['deviation_floor']:.4f}"
    lines = []
    for key, name in (CLASSES if subject.is_classes else NUMBERS).items():
        unit = f" ({subject.unit})" if key in IN_UNITS and subject.unit else ""
        error = standard_error(rows[key], subject.groups) if key in rows else None
        lines.append(
            [f"{name}{unit}", with_error(found[key], error, key in SHARES), ideal.get(key, "")]
        )
    between = f", clustered by {subject.grouped_by}" if subject.groups is not None else ""
    return TextTable(
        f"{subject.name}: figures on {len(subject.truth):,} rows",
        f"± one standard error{between}.",
        ["figure", "value", "ideal"],
        lines,
    )


def with_error(value: float, error: float | None, share: bool = False) -> str:
    """Return a value to as many decimals as its error has with two digits."""
    if not math.isfinite(value):
        return "not finite"
    factor, sign = (100.0, " %") if share else (1.0, "")
    value = factor * value
    if not error or not math.isfinite(error):
        return f"{value:.4g}{sign}".replace("-", "−")
    error = factor * error
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}{sign}".replace("-", "−")
