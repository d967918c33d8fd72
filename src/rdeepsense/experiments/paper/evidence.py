"""What was measured on one task, and how sure one can be of a difference.

Two methods are judged on the same test rows and trained from the same seeds, so a difference has a
standard error of its own (`seeds`). What its 95 % interval leaves open is not decidable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit

from rdeepsense.experiments.paper.jackknife import standard_error
from rdeepsense.experiments.paper.seeds import combined
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
        """1 where surely positive, -1 where surely negative, 0 where its interval holds 0."""
        if self.value - self.slack > 0:
            return 1
        return -1 if self.value + self.slack < 0 else 0

    def within(self, margin: float) -> int:
        """1 where its size is surely below the margin, -1 where surely above, 0 where open."""
        if abs(self.value) + self.slack < margin:
            return 1
        return -1 if abs(self.value) - self.slack > margin else 0

    def __str__(self) -> str:
        return with_error(self.value, self.error, signed=True)


class Evidence:
    """The results of one task; the points of the alpha study go by `alpha 0.2`."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.task = task
        self.points: dict[str, Any] = dict(task["methods"])
        for point in task["alpha_study"]:
            self.points[alpha_name(point["alpha"])] = {**point, "figures": point}

    def value(self, name: str, figure: str) -> Difference:
        """A figure of a method with its standard error."""
        point = self._point(name)
        if point["figures"].get(figure) is None:
            raise NotMeasuredError(f"{NAMES[figure]} of {name}")
        dropped, by_seed = (point.get(key, {}).get(figure, []) for key in ("jackknife", "by_seed"))
        error = combined(standard_error(dropped), by_seed, len(dropped))
        return Difference(point["figures"][figure], *error)

    def difference(self, one: str, other: str, figure: str) -> Difference:
        """one - other on the same rows, from the same seeds."""
        gap = self.value(one, figure).value - self.value(other, figure).value
        gaps = {}
        for key in ("jackknife", "by_seed"):
            own, theirs = (self._point(name).get(key, {}).get(figure, []) for name in (one, other))
            if len(own) != len(theirs):
                return Difference(gap, None)
            gaps[key] = [None if None in pair else pair[0] - pair[1]
                         for pair in zip(own, theirs, strict=True)]  # fmt: skip
        rows, blocks = standard_error(gaps["jackknife"]), len(gaps["jackknife"])
        return Difference(gap, *combined(rows, gaps["by_seed"], blocks))

    def gain(self, one: str, other: str, figure: str) -> Difference:
        """How much better `one` is: positive where it is, whatever the figure."""
        if figure in HIGHER_IS_BETTER:
            return self.difference(one, other, figure)
        return self.difference(other, one, figure)

    def cost(self, name: str, key: str) -> float:
        """Microseconds, millijoules or multiply-adds of one prediction."""
        cost = self._point(name).get("cost")
        if not cost or cost.get(key) is None:
            raise NotMeasuredError(f"{NAMES.get(key, key)} of {name}")
        value: float = cost[key]
        return value

    @property
    def quality(self) -> str:
        """The paper's measure of the quality of uncertainty (section 4.5)."""
        return "mefp" if self.task["kind"] == "classification" else "deviation_area"

    @property
    def floor(self) -> float:
        """The deviation area of a perfect model."""
        return float(self.task["floor"] or 0.0)

    def show(self, figure: str, *names: str) -> str:
        """The figure of these methods, with their errors."""
        shown = [f"{name} {str(self.value(name, figure)).lstrip('+')}" for name in names]
        if figure == "deviation_area_signed":
            shown = [f"{name} {self.value(name, figure)}" for name in names]
        return f"{NAMES[figure]}: {', '.join(shown)}"

    def _point(self, name: str) -> Mapping[str, Any]:
        if name not in self.points:
            raise NotMeasuredError(name)
        point: Mapping[str, Any] = self.points[name]
        return point


def alpha_name(alpha: float) -> str:
    """The name a point of the alpha study goes by."""
    return f"alpha {alpha:g}"
