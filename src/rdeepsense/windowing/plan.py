"""One recording's windows: the time that all sensors cover, its grid, and where windows begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Integers, Singles
from rdeepsense.windowing import report as reasons
from rdeepsense.windowing.grid import Grid, Neighbours
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.timeline import Stretches, Timeline, stretches_of
from rdeepsense.windowing.truth import Truth

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Plan:
    """What is to be interpolated where, and what is lost of a recording."""

    line: Timeline  # of all samples
    sensors: list[tuple[Timeline, tuple[str, ...]]]
    grid: Grid
    length: int
    step: int
    lost_samples: dict[str, int]
    over_gaps: int  # windows
    longest: float  # seconds of a stretch

    def first(self) -> Integers:
        """Return the point that each window begins with."""
        counts = _windows(self.grid.counts, self.length, self.step)
        before = np.cumsum(counts) - counts
        number = np.arange(int(counts.sum())) - np.repeat(before, counts)
        found: Integers = np.repeat(self.grid.first, counts) + number * self.step
        return found

    def times(self, points: Integers) -> Floats:
        """Return the times of some points."""
        own = np.searchsorted(self.grid.first, points, side="right") - 1
        found: Floats = self.grid.begin[own] + (points - self.grid.first[own]) / self.grid.rate
        return found

    def fill(self, signal: Singles, columns: Columns, truth: Truth | None) -> NDArray[Any] | None:
        """Write the sensors at the grid's points; returns the truth there."""
        values = None if truth is None else truth.room_for(len(self.grid))
        for place, times in self.grid.blocks():
            found = dict[int, Neighbours]()
            channel = 0
            for line, names in self.sensors:
                near = found.get(id(line))
                if near is None:
                    near = found[id(line)] = Neighbours.of(line, times, self.grid.rate)
                for name in names:
                    signal[place, channel] = near.interpolated(columns[name])
                    channel += 1
            if truth is not None and values is not None:
                near = found.get(id(self.line)) or Neighbours.of(self.line, times, self.grid.rate)
                values[place] = truth.at(near)
        return values


def plan_of(recipe: Recipe, line: Timeline, columns: Columns) -> Plan:
    """Find the stretches that all sensors cover, and lay a grid over those of a window's length."""
    assert recipe.rate is not None
    assert recipe.gap is not None
    length, step = recipe.length, recipe.step
    sensors, lost = list[tuple[Timeline, tuple[str, ...]]](), dict[str, int]()
    common: Stretches | None = None
    for sensor, names in recipe.sensors.items():
        own = _heard(line, [columns[name] for name in names])
        if silent := len(line.t) - len(own.t):
            lost[f"without a value of {sensor}"] = silent
        if not any(own is one for one, _ in sensors):
            theirs = stretches_of(own, recipe.gap)
            common = theirs if common is None else common.common(theirs)
        sensors.append((own, names))
    assert common is not None
    grid = Grid.over(common, recipe.rate, length)
    if short := _samples(line, common) - _samples(line, Stretches(grid.begin, grid.end)):
        lost[reasons.TOO_SHORT] = short
    # What the same samples would make in one stretch: time without samples is no loss of windows.
    points = len(Grid.over(common, recipe.rate, 1))
    whole = int(_windows(np.array([points]), length, step)[0])
    made = int(_windows(grid.counts, length, step).sum())
    longest = float((common.end - common.begin).max()) if len(common.begin) else 0.0
    return Plan(line, sensors, grid, length, step, lost, max(0, whole - made), longest)


def _heard(line: Timeline, columns: list[NDArray[Any]]) -> Timeline:
    """Return the samples with a value in each of some columns."""
    for column in columns:
        if column.dtype.kind == "f":
            line = line.where(np.isfinite(column[line.rows]))
    return line


def _samples(line: Timeline, stretches: Stretches) -> int:
    """Count the samples in some stretches."""
    first = np.searchsorted(line.t, stretches.begin)
    return int((np.searchsorted(line.t, stretches.end, side="right") - first).sum())


def _windows(points: Integers, length: int, step: int) -> Integers:
    """Return how many windows fit into stretches of so many points."""
    return np.maximum((points - length) // step + 1, 0)
