"""Accumulators over rows that are seen once: their moments, and a fair sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.data.scaling import Scaler
from rdeepsense.precision import SINGLE, resolution


@dataclass
class Moments:
    """Count, mean, sum of squared deviations and extremes of each column, over what is not NaN."""

    count: Floats
    mean: Floats
    squares: Floats
    low: Floats
    high: Floats
    resolution: float = SINGLE  # of the type that the values had

    @classmethod
    def none(cls, columns: int) -> Moments:
        """Return the moments of no rows."""
        zeros, infinite = np.zeros(columns), np.full(columns, np.inf)
        return cls(zeros, zeros, zeros, infinite, -infinite)

    @classmethod
    def of(cls, values: NDArray[Any]) -> Moments:
        there = ~np.isnan(values)
        count = there.sum(0).astype(np.float64)
        mean = np.where(there, values, 0.0).sum(0, dtype=np.float64) / np.maximum(count, 1)
        squares = np.where(there, values - mean, 0.0)
        low = np.where(there, values, np.inf).min(0, initial=np.inf)
        high = np.where(there, values, -np.inf).max(0, initial=-np.inf)
        with np.errstate(over="ignore"):  # a variance that is no number is refused with its column
            squared = np.square(squares).sum(0)
        return cls(count, mean, squared, low, high, resolution(values.dtype))

    def add(self, other: Moments) -> None:
        """Join two parts (Chan, Golub and LeVeque, 1983).

        mean = mean_a + d n_b / n,  squares = squares_a + squares_b + d^2 n_a n_b / n
        """
        total = np.maximum(self.count + other.count, 1)
        difference = other.mean - self.mean
        self.mean = self.mean + difference * other.count / total
        both = self.count * other.count / total
        with np.errstate(over="ignore", invalid="ignore"):
            self.squares = self.squares + other.squares + difference**2 * both
        self.count = self.count + other.count
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.resolution = min(self.resolution, other.resolution)

    def scaler(self, resolution: float | None = None) -> Scaler:
        """Return the scale of these rows; a `resolution` is that of targets."""
        std = np.sqrt(self.squares / np.maximum(self.count, 1))
        moments = self.mean, std, self.low, self.high
        if resolution is None:
            return Scaler.of_moments(*moments, self.resolution)
        return Scaler.of_moments(*moments, resolution, resolution)


class Reservoir:
    """At most `most` rows, those with the smallest keys: a fair sample where keys are random."""

    def __init__(self, most: int) -> None:
        self._most, self._bound = most, np.inf
        self._kept: list[tuple[NDArray[Any], ...]] = []

    def add(self, X: NDArray[Any], y: NDArray[Any], keys: Floats) -> None:
        chosen = keys < self._bound
        if chosen.any():
            self._kept.append((keys[chosen], X[chosen], y[chosen]))
            if sum(len(kept[0]) for kept in self._kept) > 2 * self._most:
                self._trim()

    def rows(self) -> tuple[NDArray[Any], NDArray[Any]]:
        self._trim()
        _, X, y = self._kept[0]
        return X, y

    def __len__(self) -> int:
        return min(self._most, sum(len(kept[0]) for kept in self._kept))

    def _trim(self) -> None:
        keys, X, y = (np.concatenate(column) for column in zip(*self._kept, strict=True))
        order = np.argsort(keys, kind="stable")[: self._most]
        if len(keys) > self._most:
            self._bound = float(keys[order[-1]])
        order.sort()  # as they lie in the files
        self._kept = [(keys[order], X[order], y[order])]
