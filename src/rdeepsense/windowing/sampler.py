"""Samples of any rate, one after the other, to windows at equal steps: `cut` for a stream.

The grid is that of `windowing.grid`: a stretch's begins with its first sample, a point is
interpolated between its neighbours, and a sample that it falls on is taken as it is. Each sensor is
interpolated by itself; one that is silent for longer than the gap ends the stretch, and the next
begins with the sample by which all are heard again. What is kept is the points of a window, and as
many more as a gap has.

Times are whole microseconds, numbers are float32: the runtime in C does the same, to the bit. Where
float32 does not tell samples apart they are float64, for which there is no C.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.windowing.sampling import Sampling
from rdeepsense.windowing.ticks import FURTHEST, Instant

ZERO = Instant(0, 0)


class Refusal(IntFlag):
    """Why a sample, or part of it, was not taken."""

    NONE = 0
    LATE = 1  # before the sample before it
    REPEATED = 2  # a sensor has been heard, and used, at this very time
    BAD_TIME = 4


@dataclass
class Sensor:
    """One sensor's way along the grid."""

    channels: slice
    last: NDArray[Any]
    heard: int | None = None  # microseconds
    next: Instant = ZERO  # the point that it will tell of next
    filled: int = 0  # points that it has told of
    used: bool = False  # whether a point has been told by its last sample


@dataclass
class Sampler:
    """The state of a stream of samples; `push`, then `window` while there is one."""

    sampling: Sampling
    sensors: list[Sensor] = field(init=False)
    points: NDArray[Any] = field(init=False)  # from the next window's first one on
    start: Instant = ZERO
    time: int | None = None  # of the latest sample
    behind: int = 0  # late samples in a row
    stretch: int = 0  # how often windows began anew
    late: int = 0
    repeated: int = 0

    def __post_init__(self) -> None:
        ends, dtype = self.sampling.firsts, self.sampling.dtype
        self.sensors = [
            Sensor(slice(first, end), np.zeros(end - first, dtype)) for first, end in pairwise(ends)
        ]
        room = self.sampling.length + self.sampling.ahead
        self.points = np.zeros((room, ends[-1]), dtype)
        self._step = self.sampling.ticks.steps(1)
        self._hop = self.sampling.ticks.steps(self.sampling.hop)
        self._span = self.sampling.ticks.steps(self.sampling.length - 1)

    def push(self, time: int, sample: NDArray[Any]) -> Refusal:
        """Take the channels of one time, NaN where there is none."""
        if abs(time) > FURTHEST:
            return Refusal.BAD_TIME
        if not self._is_in_order(time):
            return Refusal.LATE
        finite, fresh = np.isfinite(sample), list[Sensor]()
        told, anew, fills = Refusal.NONE, False, True
        for sensor in self.sensors:
            heard = bool(finite[sensor.channels].all())
            if heard and sensor.heard == time and sensor.used:
                heard, told = False, Refusal.REPEATED
            if sensor.heard is None or time - sensor.heard > self.sampling.gap:
                anew, fills = anew or heard, fills and heard
            if heard:
                fresh.append(sensor)
        self.repeated += told is Refusal.REPEATED
        self.time = time
        if anew:
            self._restart(time)
        for sensor in fresh:
            own = sample[sensor.channels]
            sensor.used = fills and self._fill(sensor, time, own)
            sensor.last, sensor.heard = own.copy(), time
        return told

    def window(self) -> tuple[int, int, NDArray[Any]] | None:
        """Return the next window that is complete, with its first and last microsecond."""
        if min(sensor.filled for sensor in self.sensors) < self.sampling.length:
            return None
        ticks, hop = self.sampling.ticks, self.sampling.hop
        found = self.points[: self.sampling.length].copy()
        first, last = ticks.rounded(self.start), ticks.rounded(ticks.later(self.start, self._span))
        self.points[: max(0, len(self.points) - hop)] = self.points[hop:]
        for sensor in self.sensors:
            sensor.filled -= hop
        self.start = ticks.later(self.start, self._hop)
        return first, last, found

    def _is_in_order(self, time: int) -> bool:
        """Tell whether a time is not before the last; a clock that was set back begins anew."""
        if self.time is None or time >= self.time:
            self.behind = 0
            return True
        self.late += 1
        self.behind += 1
        if self.behind < self.sampling.length:
            return False
        self.behind = 0
        for sensor in self.sensors:
            sensor.heard = None
        return True

    def _restart(self, time: int) -> None:
        self.start = Instant(time, 0)
        self.stretch += 1
        for sensor in self.sensors:
            sensor.next, sensor.filled = self.start, 0

    def _fill(self, sensor: Sensor, time: int, sample: NDArray[Any]) -> bool:
        """Write a sensor's points up to a new sample of it; tells whether there were any."""
        ticks, single = self.sampling.ticks, self.sampling.dtype
        before = time if sensor.heard is None else sensor.heard
        per_part, first = single(1 / ticks.parts), sensor.filled
        while ticks.beyond(sensor.next, time) <= ticks.near:
            point = self.points[sensor.filled, sensor.channels] if sensor.filled >= 0 else None
            if point is None:
                pass
            elif ticks.beyond(sensor.next, time) >= -ticks.near:
                point[:] = sample
            elif ticks.beyond(sensor.next, before) <= ticks.near:
                point[:] = sensor.last
            else:
                past = single(sensor.next.whole - before) + single(sensor.next.part) * per_part
                share = past / single(time - before)
                with np.errstate(over="ignore"):
                    point[:] = sensor.last + share * (sample - sensor.last)
            sensor.next = ticks.later(sensor.next, self._step)
            sensor.filled += 1
        return sensor.filled > first
