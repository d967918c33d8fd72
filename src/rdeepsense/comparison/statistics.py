"""Several splits together: means, standard errors, paired differences, pooled areas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rdeepsense._records import Record, mapping
from rdeepsense.comparison.methods import Method
from rdeepsense.errors import InputError
from rdeepsense.metrics import LEVELS, curve_area, deviation_floor

Figures = Mapping[str, float | None]

REGRESSION = ("nll", "rmse", "mae", "crps", "deviation_area", "deviation_area_signed",
              "deviation_floor", "coverage_90")  # fmt: skip
CLASSIFICATION = ("nll", "accuracy", "f1", "brier", "ece")


@dataclass(frozen=True)
class MethodScore(Record):
    """One method on the test rows of one split; in JSON the figures stand beside the rest."""

    figures: Figures  # of `metrics.evaluate`; None where not finite
    inside: Sequence[int] | None  # regression: how many rows the interval of each level holds
    predict_seconds: float

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        inside = {} if self.inside is None else {"inside": list(self.inside)}
        return {**self.figures, **inside, "predict_seconds": self.predict_seconds}

    @classmethod
    def from_json(cls, content: object) -> MethodScore:
        """Read what `to_json` gave."""
        figures = dict(mapping(content, "MethodScore"))
        inside, seconds = figures.pop("inside", None), figures.pop("predict_seconds", None)
        wanted = CLASSIFICATION if inside is None else REGRESSION
        if lacking := [name for name in wanted if name not in figures]:
            raise InputError(f"MethodScore: lacks {', '.join(lacking)}")
        return super().from_json({"inside": inside, "predict_seconds": seconds, "figures": figures})


@dataclass(frozen=True)
class SplitScore:
    """The score of a method on one split, and what its fit took."""

    fit_seconds: float
    score: MethodScore

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        return {"fit_seconds": self.fit_seconds, **self.score.to_json()}


BySplit = Mapping[int, SplitScore]
"""The scores of one method, split by split."""


class Estimate(NamedTuple):
    """A mean with its standard error; None where there are too few values."""

    value: float | None
    error: float | None


@dataclass(frozen=True)
class PooledArea(Record):
    """The deviation area of the test rows of all splits together."""

    pooled_area: float
    pooled_area_signed: float
    pooled_floor: float  # the mean area of a perfect model with as many rows
    pooled_rows: int


@dataclass(frozen=True)
class Summary:
    """A method over all splits: one row of a comparison."""

    method: str
    passes: int | None
    splits: int
    means: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]  # from the reference, paired; empty without one
    pooled: PooledArea | None  # regression
    fit_seconds: float | None
    predict_seconds: float | None

    def to_json(self) -> dict[str, object]:
        """Return plain data: for each figure f also f_se, f_difference and f_difference_se."""
        row: dict[str, object] = {
            "method": self.method,
            "passes": self.passes,
            "splits": self.splits,
        }
        for key, mean in self.means.items():
            row[key], row[f"{key}_se"] = mean
            if key in self.differences:
                row[f"{key}_difference"], row[f"{key}_difference_se"] = self.differences[key]
        pooled = {} if self.pooled is None else self.pooled.to_json()
        seconds = {"fit_seconds": self.fit_seconds, "predict_seconds": self.predict_seconds}
        return row | pooled | seconds


def mean_and_error(values: Sequence[float]) -> Estimate:
    """Return the mean and std / sqrt(n), std with n - 1."""
    if not values:
        return Estimate(None, None)
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return Estimate(float(np.mean(values)), error)


def paired(method: BySplit, reference: BySplit, key: str) -> Estimate:
    """Return mean and standard error of (method - reference) over the splits that both have.

    What makes a split hard is in both figures and drops out, so that this is far sharper than the
    two standard errors on their own.
    """
    differences = []
    for split in method:
        if split in reference:
            own = method[split].score.figures[key]
            other = reference[split].score.figures[key]
            if own is not None and other is not None:
                differences.append(own - other)
    return mean_and_error(differences)


def pooled_area(method: BySplit) -> PooledArea:
    """Return the deviation area of all test rows of all splits, with the floor at that number.

    A row can be in the test rows of several splits; counted as new each time, it makes the floor
    a little lower than it is.
    """
    scores = [own.score for own in method.values()]
    inside = np.sum([score.inside or () for score in scores], axis=0)
    rows = int(sum(score.figures["n"] or 0 for score in scores))
    levels, observed = np.array(LEVELS), inside / rows
    return PooledArea(
        float(curve_area(levels, observed, signed=False)),
        float(curve_area(levels, observed, signed=True)),
        deviation_floor(rows),
        rows,
    )


def summarise(method: Method, scores: BySplit, reference: BySplit | None, task: str) -> Summary:
    """Return one row of a comparison: `scores` of the method over all splits."""
    means, differences = {}, {}
    for key in REGRESSION if task == "regression" else CLASSIFICATION:
        values = [own.score.figures[key] for own in scores.values()]
        means[key] = mean_and_error([value for value in values if value is not None])
        if reference is not None and key != "deviation_floor":
            differences[key] = paired(scores, reference, key)
    return Summary(
        method.name,
        method.passes,
        len(scores),
        means,
        differences,
        pooled_area(scores) if task == "regression" else None,
        mean_and_error([own.fit_seconds for own in scores.values()]).value,
        mean_and_error([own.score.predict_seconds for own in scores.values()]).value,
    )


def with_error(value: float | None, error: float | None, signed: bool = False) -> str:
    """Return the value to the decimals of its standard error with two digits, three at most."""
    if value is None:
        return "-"
    sign = "+" if signed else ""
    if not error:
        return f"{value:{sign}.3f}"
    decimals = min(3, max(0, 1 - math.floor(math.log10(error))))
    return f"{value:{sign}.{decimals}f} ± {error:.{decimals}f}"
