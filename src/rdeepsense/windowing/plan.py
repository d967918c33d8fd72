"""One recording's windows: the time that all sensors cover, its grid, and where windows begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.windowing import report as reasons
from rdeepsense.windowing.grid import Grid, Neighbours
from rdeepsense.windowing.heard import Heard
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.timeline import Stretches, Timeline, stretches_of
from rdeepsense.windowing.truth import Truth

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Plan:
    """What is to be interpolated where, and what is lost of a recording."""

    heard: Heard
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

    def fill(
        self, signal: NDArray[Any], columns: Columns, truth: Truth | None
    ) -> NDArray[Any] | None:
        """Write the sensors at the grid's points; returns the truth there."""
        values = None if truth is None else truth.room_for(len(self.grid))
        known = [] if truth is None else truth.lines(self.heard)
        for place, times in self.grid.blocks():
            found = dict[int, Neighbours]()
            for line in (*(own for own, _ in self.sensors), *known):
                if id(line) not in found:
                    found[id(line)] = Neighbours.of(line, times, self.grid.rate)
            channel = 0
            for line, names in self.sensors:
                near = found[id(line)]
                for name in names:
                    signal[place, channel] = near.interpolated(columns[name])
                    channel += 1
            if truth is not None and values is not None:
                values[place] = truth.at([found[id(line)] for line in known])
        return values


def plan_of(recipe: Recipe, heard: Heard) -> Plan:
    """Find the stretches that all sensors cover, and lay a grid over those of a window's length."""
    assert recipe.rate is not None
    assert recipe.gap is not None
    length, step, line = recipe.length, recipe.step, heard.line
    sensors, lost = list[tuple[Timeline, tuple[str, ...]]](), dict[str, int]()
    common: Stretches | None = None
    for (sensor, names), own in zip(recipe.sensors.items(), heard.sensors, strict=True):
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
    return Plan(heard, sensors, grid, length, step, lost, max(0, whole - made), longest)


def _samples(line: Timeline, stretches: Stretches) -> int:
    """Count the samples in some stretches."""
    first = np.searchsorted(line.t, stretches.begin)
    return int((np.searchsorted(line.t, stretches.end, side="right") - first).sum())


def _windows(points: Integers, length: int, step: int) -> Integers:
    """Return how many windows fit into stretches of so many points."""
    return np.maximum((points - length) // step + 1, 0)
