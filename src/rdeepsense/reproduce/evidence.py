"""What was measured on one task, and how sure one can be of a difference.

Two methods are judged on the same test rows, so a difference has a standard error of its own, from
leaving one block of rows out at a time (`jackknife`). Less than two of them decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rdeepsense.benchmark.statistics import with_error
from rdeepsense.reproduce.jackknife import standard_error

YES, NO, OPEN = "yes", "no", "not decidable"
ERRORS = 2.0  # standard errors that a difference must exceed
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
    """A number with its standard error, None where there is none."""

    value: float
    error: float | None

    def sign(self, margin: float = 0.0) -> int:
        """1 above the margin, -1 below minus the margin, 0 where two errors leave it open."""
        if self.error is None:
            return 0
        if self.value - ERRORS * self.error > margin:
            return 1
        return -1 if self.value + ERRORS * self.error < -margin else 0

    def within(self, margin: float) -> int:
        """1 where its size is surely below the margin, -1 where surely above, 0 where open."""
        if self.error is None:
            return 0
        size, slack = abs(self.value), ERRORS * self.error
        if size + slack < margin:
            return 1
        return -1 if size - slack > margin else 0

    def __str__(self) -> str:
        return with_error(self.value, self.error, signed=True)


class Evidence:
    """The results of one task; the points of the alpha study go by `alpha 0.2`."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.task = task
        self.points: dict[str, Any] = dict(task["methods"])
        for point in task["alpha_study"]:
            own = {"figures": point, "jackknife": point.get("jackknife", {})}
            self.points[alpha_name(point["alpha"])] = own

    def value(self, name: str, figure: str) -> Difference:
        """A figure of a method with its standard error."""
        figures = self._point(name)["figures"]
        if figures.get(figure) is None:
            raise NotMeasuredError(f"{NAMES[figure]} of {name}")
        return Difference(figures[figure], figures.get(f"{figure}_se"))

    def difference(self, one: str, other: str, figure: str) -> Difference:
        """one - other on the same rows."""
        gap = self.value(one, figure).value - self.value(other, figure).value
        pairs = [self._point(name)["jackknife"].get(figure, []) for name in (one, other)]
        if not pairs[0] or len(pairs[0]) != len(pairs[1]):
            return Difference(gap, None)
        gaps = [None if None in pair else pair[0] - pair[1] for pair in zip(*pairs, strict=True)]
        return Difference(gap, standard_error(gaps))

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
