"""Scores of a predictive distribution on the test rows: figures, their errors, curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense.arrays import Floats
from rdeepsense.calibration.reject import predicted_score
from rdeepsense.distributions import AnyDistribution, Categorical, Mixture
from rdeepsense.experiments.paper.jackknife import (
    block_sums,
    blocks,
    leave_one_out,
    standard_error,
)
from rdeepsense.experiments.paper.study import Parts
from rdeepsense.experiments.records import Record
from rdeepsense.experiments.tasks.task import Targets

LEVEL = 0.9  # of intervals
KEPT = tuple(round(1 - 0.05 * i, 2) for i in range(19))  # 1.0, 0.95, ... 0.1
DIGITS = 6
REGRESSION = ("nll", "mae", "rmse", "crps", "deviation_area", "deviation_area_signed",
              "coverage_90", "sharpness")  # fmt: skip
CLASSIFICATION = ("nll", "accuracy", "f1", "mefp", "ece", "brier")


Values = Sequence[float | None]
"""Numbers as JSON has them: None where not finite."""


@dataclass(frozen=True)
class CalibrationCurve(Record):
    """The share of values inside the central interval of each level."""

    levels: Sequence[float]
    observed: Values


@dataclass(frozen=True)
class RiskCurve(Record):
    """The error of the rows that are kept when the least certain ones are refused."""

    kept: Sequence[float]
    risk: Values
    risk_name: str


@dataclass(frozen=True)
class ExampleCase(Record):
    """Some true values with their predicted means and 90 % intervals."""

    title: str
    truth: Values
    mean: Values
    low: Values
    high: Values


@dataclass(frozen=True)
class Examples(Record):
    """Cases to draw over the same x."""

    x: Values
    x_label: str
    y_label: str
    cases: Sequence[ExampleCase]


@dataclass(frozen=True)
class HeldOutScores:
    """Figures with standard errors (`_se`), their leave-one-out values, and curves."""

    figures: Mapping[str, float | None]
    calibration: CalibrationCurve | None  # None for classes
    risk_coverage: RiskCurve
    group_coverage: Values | None  # by group, where there are groups; accuracy for classes
    jackknife: Mapping[str, Values]


def score(dist: AnyDistribution, parts: Parts) -> HeldOutScores:
    """Score a prediction of the test rows."""
    labels = parts.test[1]
    y = _categorical(dist).encode(labels) if dist.is_categorical else labels
    wanted = CLASSIFICATION if dist.is_categorical else REGRESSION
    figures: dict[str, float | None] = {
        name: value for name, value in metrics.evaluate(dist, labels).items() if name in wanted
    }
    rows = _losses(dist, y)
    block = blocks(len(y), parts.clusters)
    dropped = {
        name: leave_one_out(block_sums(np.column_stack([loss, np.ones_like(loss)]), block), _ratio)
        for name, loss in rows.items()
    } | _dropped_others(dist, y, block)
    for name, values in dropped.items():
        figures[f"{name}_se"] = standard_error(values)
    curve = None
    if not dist.is_categorical:
        levels, observed = metrics.calibration_curve(dist, y)
        curve = CalibrationCurve(levels.tolist(), rounded(observed))
    return HeldOutScores(
        figures={name: _finite(value) for name, value in figures.items()},
        calibration=curve,
        risk_coverage=_risk_coverage(dist, rows, parts),
        group_coverage=_group_coverage(dist, y, parts),
        jackknife={name: rounded(values) for name, values in dropped.items()},
    )


def _losses(dist: AnyDistribution, y: Targets) -> dict[str, Floats]:
    """Return the losses that figures average over rows, row by row."""
    nll = -np.asarray(dist.log_prob(y)).reshape(len(y), -1).mean(axis=1)
    if dist.is_categorical:
        return {"nll": nll, "accuracy": (_modes(dist) == y).astype(float)}
    return {"nll": nll, "mae": np.abs(dist.mean - y).reshape(len(y), -1).mean(axis=1)}


def _dropped_others(
    dist: AnyDistribution, y: Targets, block: NDArray[np.intp]
) -> dict[str, list[float | None]]:
    """Return leave-one-out values of figures that are no means of rows."""
    if dist.is_categorical:
        predicted, wrong = _modes(dist), _modes(dist) != y
        entropy = np.asarray(_categorical(dist).entropy())
        false = block_sums(np.column_stack([entropy * wrong, wrong]), block)
        classes = _categorical(dist).probs.shape[-1]
        confusion = np.zeros((len(y), classes * classes))
        confusion[np.arange(len(y)), y.astype(int) * classes + predicted] = 1
        return {
            "mefp": leave_one_out(false, _ratio),
            "f1": leave_one_out(block_sums(confusion, block), _macro_f1),
        }
    levels = np.array(metrics.LEVELS)
    central = np.abs(2 * dist.cdf(y) - 1).reshape(len(y), -1)
    inside = np.stack([(central <= level).mean(axis=1) for level in levels], axis=1)
    sums = block_sums(np.column_stack([inside, np.ones(len(y))]), block)

    def area(signed: bool) -> Callable[[Floats], float]:
        return lambda s: float(metrics.curve_area(levels, s[:-1] / s[-1], signed=signed))

    return {
        "deviation_area": leave_one_out(sums, area(False)),
        "deviation_area_signed": leave_one_out(sums, area(True)),
    }


def _ratio(sums: Floats) -> float:
    return float(sums[0] / sums[1]) if sums[1] else math.nan


def _macro_f1(confusion: Floats) -> float:
    """Return the F1 of `metrics.f1`: over the classes that are predicted or true."""
    classes = math.isqrt(confusion.size)
    table = confusion.reshape(classes, classes)
    either = table.sum(axis=0) + table.sum(axis=1)
    return float(np.mean(2 * np.diag(table)[either > 0] / either[either > 0]))


def _risk_coverage(dist: AnyDistribution, rows: dict[str, Floats], parts: Parts) -> RiskCurve:
    """Return the error of the rows that are kept when the least certain ones are refused.

    At least the share asked for is kept: more where rows are equally uncertain.
    """
    if dist.is_categorical:
        risk, name = 1 - rows["accuracy"], "error rate"
    else:
        risk, name = rows["mae"], f"MAE ({parts.task.unit})"
    coverage, mean = metrics.risk_coverage(predicted_score(dist), risk)
    ends = np.searchsorted(coverage, np.array(KEPT) - 1e-9)
    return RiskCurve(list(KEPT), rounded(mean[ends]), name)


def _group_coverage(dist: AnyDistribution, y: Targets, parts: Parts) -> Values | None:
    """Return the coverage of the 90 % interval by test group; for classes the accuracy."""
    groups = parts.test_groups
    if groups is None:
        return None
    if dist.is_categorical:
        hit = (_modes(dist) == y).astype(float)
    else:
        hit = (np.abs(2 * dist.cdf(y) - 1) <= LEVEL).reshape(len(y), -1).mean(axis=1)
    number = np.unique(groups, return_inverse=True)[1]
    return rounded(np.bincount(number, weights=hit) / np.bincount(number))


def examples(dist: AnyDistribution, parts: Parts, cases: int = 4) -> Examples | None:
    """Return test rows with their 90 % bands: waveforms whole, else rows in predicted order."""
    if dist.is_categorical:
        return None
    y, task = parts.test[1], parts.task
    low, high = dist.interval(LEVEL)
    bands = {"truth": y, "mean": dist.mean, "low": low, "high": high}
    if parts.outputs >= 20:
        chosen = np.linspace(0, len(y) - 1, cases).round().astype(int)
        seconds = np.arange(parts.outputs) / 125  # the sampling rate of the pressure waves
        return Examples(
            rounded(seconds),
            "time (s)",
            f"arterial pressure ({task.unit})",
            [
                ExampleCase(f"test window {row}", **{k: rounded(v[row]) for k, v in bands.items()})
                for row in chosen.tolist()
            ],
        )
    chosen = np.linspace(0, len(y) - 1, min(60, len(y))).round().astype(int)
    columns = {k: np.asarray(v).reshape(len(y), -1)[chosen] for k, v in bands.items()}
    shown = []
    for number, target in enumerate(task.targets):
        order = np.argsort(columns["mean"][:, number], kind="stable")
        own = {key: rounded(values[order, number]) for key, values in columns.items()}
        shown.append(ExampleCase(target, **own))
    label = "test rows, in the order of the predicted mean"
    return Examples(list(range(1, len(chosen) + 1)), label, task.unit, shown)


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Return the values to six significant digits; None where not finite."""
    return [
        None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")
        for value in values
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _categorical(dist: AnyDistribution) -> Categorical:
    """Return class probabilities; those of a mixture are the means of its members'."""
    matched = dist.moment_matched() if isinstance(dist, Mixture) else dist
    assert isinstance(matched, Categorical)
    return matched


def _modes(dist: AnyDistribution) -> NDArray[np.intp]:
    return np.asarray(_categorical(dist).mode)
