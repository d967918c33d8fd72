"""What several splits say together: means, standard errors, paired differences, pooled areas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rdeepsense.metrics import LEVELS, curve_area, deviation_floor

Figures = Mapping[str, Any]
BySplit = Mapping[int, Figures]
"""The figures of one method, split by split."""

REGRESSION = ("nll", "rmse", "mae", "crps", "deviation_area", "deviation_area_signed",
              "deviation_floor", "coverage_90")  # fmt: skip
CLASSIFICATION = ("nll", "accuracy", "f1", "brier", "ece")


def mean_and_error(values: Sequence[float]) -> tuple[float | None, float | None]:
    """mean and std / sqrt(n), std with n - 1; None where there are too few values."""
    if not values:
        return None, None
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return float(np.mean(values)), error


def paired(method: BySplit, reference: BySplit, key: str) -> tuple[float | None, float | None]:
    """Mean and standard error of (method - reference) over the splits that both have.

    What makes a split hard is in both figures and drops out, so that this is far sharper than the
    two standard errors on their own.
    """
    shared = [split for split in method if split in reference]
    pairs = [(method[split][key], reference[split][key]) for split in shared]
    return mean_and_error([own - other for own, other in pairs if None not in (own, other)])


def pooled_area(method: BySplit) -> dict[str, float | int]:
    """Deviation area of all test rows of all splits together, with the floor at that number.

    A row can be in the test rows of several splits; counted as new each time, it makes the floor
    a little lower than it is.
    """
    inside = np.sum([figures["inside"] for figures in method.values()], axis=0)
    rows = sum(figures["n"] for figures in method.values())
    levels, observed = np.array(LEVELS), inside / rows
    return {
        "pooled_area": float(curve_area(levels, observed, signed=False)),
        "pooled_area_signed": float(curve_area(levels, observed, signed=True)),
        "pooled_floor": deviation_floor(int(rows)),
        "pooled_rows": int(rows),
    }


def summarise(method: BySplit, reference: BySplit | None, task: str) -> dict[str, Any]:
    """One row of a comparison.

    For each figure `f`: its mean f, f_se, and where there is a reference f_difference and
    f_difference_se. For regression also the pooled deviation area.
    """
    keys = REGRESSION if task == "regression" else CLASSIFICATION
    row: dict[str, Any] = {"splits": len(method)}
    for key in keys:
        finite = [figures[key] for figures in method.values() if figures[key] is not None]
        row[key], row[f"{key}_se"] = mean_and_error(finite)
        if reference is not None and key != "deviation_floor":
            difference, error = paired(method, reference, key)
            row[f"{key}_difference"], row[f"{key}_difference_se"] = difference, error
    if task == "regression":
        row |= pooled_area(method)
    for key in ("fit_seconds", "predict_seconds"):
        row[key] = mean_and_error([figures[key] for figures in method.values()])[0]
    return row


def with_error(value: float | None, error: float | None, signed: bool = False) -> str:
    """The value to the decimals of its standard error with two digits, three at most."""
    if value is None:
        return "-"
    sign = "+" if signed else ""
    if not error:
        return f"{value:{sign}.3f}"
    decimals = min(3, max(0, 1 - math.floor(math.log10(error))))
    return f"{value:{sign}.{decimals}f} ± {error:.{decimals}f}"
