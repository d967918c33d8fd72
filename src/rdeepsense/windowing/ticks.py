"""Time in whole numbers, so that a stream has the same grid on every machine.

A rate p / q samples a second, of whole p and q, has points at

    g_k = begin + k 10^6 q / p microseconds

and each is a number of microseconds and of p-ths of one. A sample within a millionth of a period of
a point, that is q of those p-ths, is taken as it is; see `windowing.grid`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

SECOND = 1_000_000  # microseconds
MOST_PARTS = (1 << 31) - 1  # so that two of them have a sum of 32 bits
FURTHEST = 1 << 61  # microseconds


class Instant(NamedTuple):
    """Whole microseconds, and a rest in parts of one."""

    whole: int
    part: int


@dataclass(frozen=True)
class Ticks:
    """The steps of a grid."""

    parts: int  # of a microsecond: p
    near: int  # parts that make no difference: q

    @classmethod
    def of(cls, rate: float) -> Ticks:
        """Take the fraction next to a rate whose parts fit into 32 bits."""
        most = max(1, min(SECOND, int(MOST_PARTS / max(rate, 1.0))))
        found = Fraction(rate).limit_denominator(most)
        return cls(found.numerator, found.denominator)

    def steps(self, count: int) -> Instant:
        """Return how long so many periods are."""
        return Instant(*divmod(count * SECOND * self.near, self.parts))

    def later(self, at: Instant, by: Instant) -> Instant:
        """Add a duration."""
        carried, part = divmod(at.part + by.part, self.parts)
        return Instant(at.whole + by.whole + carried, part)

    def rounded(self, at: Instant) -> int:
        """Return the nearest microsecond; halfway, the later one."""
        return at.whole + (2 * at.part >= self.parts)

    def beyond(self, at: Instant, time: int) -> int:
        """Return how many parts an instant lies after a time."""
        return (at.whole - time) * self.parts + at.part
