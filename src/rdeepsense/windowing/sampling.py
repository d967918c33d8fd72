"""What a stream of samples is cut by: the recipe of a log, in whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rdeepsense.errors import InputError
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.ticks import SECOND, Ticks

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
