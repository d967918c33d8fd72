"""The measurements on one task, and how sure one can be of a difference.

Two methods are scored on the same test rows and trained from the same seeds, so the standard
error of a difference is that of paired values (`seeds`). What its 95 % interval leaves open is not
decidable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.special import stdtrit

from rdeepsense.experiments.paper.jackknife import standard_error
from rdeepsense.experiments.paper.score import Values
from rdeepsense.experiments.paper.seeds import combined
from rdeepsense.experiments.paper.task_results import AlphaPoint, MethodResults, TaskResults
from rdeepsense.experiments.paper.trainings import PredictionCost
from rdeepsense.experiments.uci.statistics import with_error

YES, NO, OPEN = "yes", "no", "not decidable"
INTERVAL = 0.95  # of what a difference may be
HIGHER_IS_BETTER = ("accuracy", "f1", "mefp")
NAMES = {"nll": "NLL", "mae": "MAE", "accuracy": "accuracy", "f1": "F1", "mefp": "MEFP",
         "deviation_area": "deviation area", "deviation_area_signed": "signed deviation area",
         "microseconds": "time", "millijoules": "energy"}  # fmt: skip


class NotMeasuredError(Exception):
    """Something a rule needs is not among the results."""


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim, the numbers behind it, and why."""

    verdict: str
    measured: str
    why: str


@dataclass(frozen=True)
class Difference:
    """A number with its standard error, None where there is none, and its degrees of freedom."""

    value: float
    error: float | None
    freedom: float = math.inf

    @property
    def slack(self) -> float:
        """Half the width of its interval; all numbers are possible where no error is known."""
        if self.error is None:
            return math.inf
        return self.error * float(stdtrit(self.freedom, (1 + INTERVAL) / 2))

    def sign(self) -> int:
        """Return 1 where surely positive, -1 where surely negative, else 0."""
        if self.value - self.slack > 0:
            return 1
        return -1 if self.value + self.slack < 0 else 0

    def within(self, margin: float) -> int:
        """Return 1 where its size is surely below the margin, -1 where surely above, else 0."""
        if abs(self.value) + self.slack < margin:
            return 1
        return -1 if abs(self.value) - self.slack > margin else 0

    def __str__(self) -> str:
        return with_error(self.value, self.error, signed=True)


class Evidence:
    """The results of one task; the points of the alpha study go by `alpha 0.2`."""

    def __init__(self, task: TaskResults) -> None:
        self.task = task
        self.points: dict[str, MethodResults | AlphaPoint] = {
            **task.methods,
            **{alpha_name(point.alpha): point for point in task.alpha_study},
        }

    def value(self, name: str, figure: str) -> Difference:
        """Return a figure of a method with its standard error."""
        point = self._point(name)
        value = point.figures.get(figure)
        if value is None:
            raise NotMeasuredError(f"{NAMES[figure]} of {name}")
        dropped, by_seed = point.jackknife.get(figure, ()), point.by_seed.get(figure, ())
        return Difference(value, *combined(standard_error(dropped), by_seed, len(dropped)))

    def difference(self, one: str, other: str, figure: str) -> Difference:
        """Return one - other on the same rows, from the same seeds."""
        gap = self.value(one, figure).value - self.value(other, figure).value
        own, theirs = self._point(one), self._point(other)
        dropped = _gaps(own.jackknife, theirs.jackknife, figure)
        by_seed = _gaps(own.by_seed, theirs.by_seed, figure)
        if dropped is None or by_seed is None:
            return Difference(gap, None)
        return Difference(gap, *combined(standard_error(dropped), by_seed, len(dropped)))

    def gain(self, one: str, other: str, figure: str) -> Difference:
        """Return how much better `one` is: positive where it is, whatever the figure."""
        if figure in HIGHER_IS_BETTER:
            return self.difference(one, other, figure)
        return self.difference(other, one, figure)

    def cost(self, name: str, figure: str = "microseconds") -> PredictionCost:
        """Return what one prediction costs; `figure` is what the error speaks of without it."""
        point = self._point(name)
        if not isinstance(point, MethodResults) or point.cost is None:
            raise NotMeasuredError(f"{NAMES[figure]} of {name}")
        return point.cost

    def time_and_energy(self, name: str) -> dict[str, float]:
        """Return microseconds and millijoules of one prediction."""
        cost = self.cost(name)
        return {"microseconds": cost.microseconds, "millijoules": cost.millijoules}

    @property
    def quality(self) -> str:
        """The paper's measure of the quality of uncertainty (section 4.5)."""
        return "mefp" if self.task.is_classification else "deviation_area"

    @property
    def floor(self) -> float:
        """The deviation area of a perfect model."""
        return self.task.floor or 0.0

    def show(self, figure: str, *names: str) -> str:
        """Return the figure of these methods as text, with their errors."""
        shown = [f"{name} {str(self.value(name, figure)).lstrip('+')}" for name in names]
        if figure == "deviation_area_signed":
            shown = [f"{name} {self.value(name, figure)}" for name in names]
        return f"{NAMES[figure]}: {', '.join(shown)}"

    def _point(self, name: str) -> MethodResults | AlphaPoint:
        if name not in self.points:
            raise NotMeasuredError(name)
        return self.points[name]


def alpha_name(alpha: float) -> str:
    """Return the name a point of the alpha study goes by."""
    return f"alpha {alpha:g}"


def _gaps(own: Mapping[str, Values], theirs: Mapping[str, Values], figure: str) -> Values | None:
    """Return the differences place by place; None where the two do not go together."""
    ours, others = own.get(figure, ()), theirs.get(figure, ())
    if len(ours) != len(others):
        return None
    pairs = zip(ours, others, strict=True)
    return [None if one is None or other is None else one - other for one, other in pairs]
