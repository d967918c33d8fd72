"""Samples that arrive one by one: resampling and smoothing of decisions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntFlag
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError
from rdeepsense.modelfile.schema import Json, check_fields, number
from rdeepsense.status import Status
from rdeepsense.windowing.grid import FURTHEST, SECOND, Instant, Ticks
from rdeepsense.windowing.recipe import Recipe

# --------------------------------------------------------------------------------------------------
# Sizes of a stream of samples in integers, from a recipe
# --------------------------------------------------------------------------------------------------

SLACK = 1e-3  # microseconds, that floats make of a gap
COVERAGE = 0.9  # of the interval in a decision
MOST_AHEAD = 1 << 22  # numbers that are kept of a gap


@dataclass(frozen=True)
class Sampling:
    """Windows of `length` points every `hop`, of sensors with so many channels each."""

    ticks: Ticks
    rate: float
    length: int
    hop: int
    gap: int  # microseconds
    sensors: tuple[int, ...]
    double: bool = False  # whether samples are float64

    @classmethod
    def of(cls, recipe: Recipe) -> Sampling:
        """Take a recipe whose rate and gap were found."""
        if recipe.rate is None or recipe.gap is None:
            raise InputError("the recipe has no rate or gap yet; windows(...) finds them in a log")
        gap = math.floor(recipe.gap * SECOND + SLACK)
        channels = tuple(len(own) for own in recipe.sensors.values())
        if recipe.gap * recipe.rate * sum(channels) > MOST_AHEAD:
            raise InputError(
                f"gap = {recipe.gap:g} s has {recipe.gap * recipe.rate:.4g} samples at "
                f"{recipe.rate:g} a second, of {sum(channels)} channels; a stream keeps at most "
                f"{MOST_AHEAD:,} numbers of it"
            )
        return cls(
            Ticks.of(recipe.rate),
            recipe.rate,
            recipe.length,
            recipe.step,
            gap,
            channels,
            recipe.double,
        )

    @property
    def dtype(self) -> type[np.float32 | np.float64]:
        """The type of a sample."""
        return np.float64 if self.double else np.float32

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first channel of each sensor, and how many there are."""
        found = [0]
        for count in self.sensors:
            found.append(found[-1] + count)
        return tuple(found)

    @property
    def ahead(self) -> int:
        """How many points a sensor may be told of before another one, or at once."""
        return self.gap * self.ticks.parts // (SECOND * self.ticks.near) + 2


# --------------------------------------------------------------------------------------------------
# Streaming counterpart of `cut`: samples of any rate to windows
#
# The grid is that of `windowing.grid`: a stretch's begins with its first sample, a point is
# interpolated between its neighbours, and a sample that it falls on is taken as it is. Each sensor
# is interpolated by itself; one that is silent for longer than the gap ends the stretch, and the
# next begins with the sample by which all are heard again. What is kept is the points of a window,
# and as many more as a gap has.
#
# Times are whole microseconds, numbers are float32: the runtime in C does the same, to the bit.
# Where float32 does not tell samples apart they are float64, for which there is no C.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Smoothing of decisions over overlapping windows
#
# Between two windows the class stays, or with the probability `change` another one begins, drawn
# with the frequencies pi of the training. A window whose model says p counts as the part `evidence`
# of an independent one:
#
#     b' = (1 - change) b + change pi,      b_k ~ b'_k (p_k / pi_k)^evidence,      sum b = 1
#
# b is a distribution: where both numbers fit, b_k is how often class k is the true one. A label
# comes where b_k >= `at`, and goes where it is wrong with that probability, 1 - b_k > `at`; between
# the two it stays.
# --------------------------------------------------------------------------------------------------

LEAST = 1e-6  # of a probability: no window excludes a class for ever
LASTS = 30.0  # seconds that a class is believed to last where no stream was seen
TRUSTED = Status.UNSURE  # a window with any other flag is no evidence
RANGES = {"evidence": (1e-4, 1.0), "change": (1e-4, 1.0), "at": (0.5, 1.0)}
FIELDS = {name: number(least, most) for name, (least, most) in RANGES.items()}


@dataclass(frozen=True)
class Smoothing:
    """How decisions are taken together.

    Parameters
    ----------
    evidence : what a window counts beside an independent one: 0 to 1.
    change : the probability that another class has begun since the window before.
    at : the probability that a label comes with, above 0.5; it goes where it is wrong with that.
    """

    evidence: float
    change: float
    at: float = 0.6

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{name} = {value!r:.40} is no number")
            if not least <= value <= most:
                raise InputError(f"{name} = {value!r:.40}; accepted: {least:g} to {most:g}")

    @classmethod
    def unseen(cls, recipe: Recipe) -> Smoothing:
        """Return what is believed before any stream was seen.

        Half of what is new in a window counts: its other half is believed to be like the window
        before. A class lasts half a minute.
        """
        new = min(1.0, recipe.hop / recipe.window)
        return cls(max(1e-4, new / 2), float(np.clip(recipe.hop / LASTS, 1e-4, 0.5)))

    @classmethod
    def from_json(cls, value: Json) -> Smoothing:
        """Read what a file holds, which anyone may have written."""
        check_fields(value, FIELDS, at="smoothing.")
        return cls(**{name: float(value[name]) for name in FIELDS})

    def spaced(self, factor: float) -> Smoothing:
        """Return it for windows so many times as far apart: a second is worth what it was."""
        return Smoothing(
            float(np.clip(self.evidence * factor, *RANGES["evidence"])),
            float(np.clip(self.change * factor, *RANGES["change"])),
            self.at,
        )

    def next(self, belief: Floats, probs: Floats | None, prior: Floats) -> Floats:
        """Return the belief after a window; None where it is no evidence."""
        ahead: Floats = belief + self.change * (prior - belief)
        if probs is None:
            return ahead
        logs = np.log(ahead) + self.evidence * (np.log(np.maximum(probs, LEAST)) - np.log(prior))
        odds = np.exp(logs - logs.max(-1, keepdims=True))
        found: Floats = odds / odds.sum(-1, keepdims=True)
        return found

    def label(self, belief: Floats, label: int) -> int:
        """Return the label after a window, -1 where none is probable."""
        best = int(np.argmax(belief))
        if belief[best] >= self.at:
            return best
        return -1 if label >= 0 and belief[label] < 1 - self.at else label


def prior_of(frequencies: Floats | None, classes: int) -> Floats:
    """Return the frequencies of classes, none of them 0; all alike where they are not known."""
    if frequencies is None:
        return np.full(classes, 1 / classes)
    kept = np.maximum(frequencies, LEAST)
    found: Floats = kept / kept.sum()
    return found
