"""Predictions that are intervals alone: the figures they have, and those they cannot have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError
from rdeepsense.metrics import LEVELS, curve_area, deviation_floor

COVERAGES = (50, 80, 90, 95)
UNKNOWN = ("nll", "crps", "sharpness")
"""Figures that need a density."""


@dataclass(frozen=True)
class Intervals:
    """The interval of each level for each row, and a point prediction where there is one."""

    bounds: Mapping[float, tuple[Floats, Floats]]
    point: Floats | None

    @classmethod
    def ask(cls, of: Callable[[float], Any], point: Floats | None, rows: int) -> Self:
        """Ask for the interval of every level that a figure needs; `of(coverage)` gives it."""
        levels = sorted({*LEVELS, *(percent / 100 for percent in COVERAGES)})
        return cls({level: _pair(of(level), rows, level) for level in levels}, point)

    def figures(self, y: ArrayLike) -> dict[str, float | None]:
        """Return every figure of `metrics.evaluate`, None where it needs more than intervals."""
        truth = np.asarray(y, np.float64)
        observed = np.array(self.inside(truth)) / len(truth)
        errors = None if self.point is None else self.point - truth
        area = {
            name: float(curve_area(np.array(LEVELS), observed, signed=signed))
            for name, signed in (("deviation_area", False), ("deviation_area_signed", True))
        }
        low, high = self.bounds[0.9]
        miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
        return {
            "n": len(truth),
            "mae": None if errors is None else float(np.mean(np.abs(errors))),
            "rmse": None if errors is None else float(np.sqrt(np.mean(errors**2))),
            **area,
            "deviation_floor": deviation_floor(len(truth)),
            **{f"coverage_{c}": self._held(truth, c / 100) / len(truth) for c in COVERAGES},
            "interval_score_90": float(np.mean(high - low + 20 * miss)),
            **dict.fromkeys(UNKNOWN),
        }

    def inside(self, y: ArrayLike) -> list[int]:
        """Return how many rows the interval of each of the paper's levels holds."""
        return [self._held(np.asarray(y, np.float64), level) for level in LEVELS]

    def _held(self, truth: Floats, level: float) -> int:
        low, high = self.bounds[level]
        return int(np.sum((low <= truth) & (truth <= high)))


def _pair(given: Any, rows: int, level: float) -> tuple[Floats, Floats]:
    """Take (low, high) as two arrays, or as the columns of one."""
    array = np.asarray(given, np.float64)
    if array.shape == (rows, 2) and not isinstance(given, tuple | list):
        array = array.T
    if array.shape != (2, rows):
        raise InputError(
            f"the interval of coverage {level:g} has shape {array.shape}; needed: (low, high) with "
            f"{rows} values each, or an array ({rows}, 2)"
        )
    low, high = array
    if np.any(np.isnan(array)) or np.any(low > high):
        raise InputError(f"the interval of coverage {level:g} has a low that is not below its high")
    return low, high
