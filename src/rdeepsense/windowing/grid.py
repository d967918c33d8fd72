"""Samples at equal steps: linear interpolation between neighbours, a block at a time.

Every stretch has a grid of its own, which begins with its first sample:

    g_k = begin + k / rate,    x(g) = x_i + w (x_(i+1) - x_i),    w = (g - t_i) / (t_(i+1) - t_i)

for the neighbours t_i <= g < t_(i+1). A sample within a millionth of a period of g is taken as it
is, so that a regular log passes unchanged, however its times were rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.windowing.timeline import Stretches, Timeline

BLOCK = 1 << 18  # points at a time, which bounds the memory
EQUAL = 1e-6  # of a period


@dataclass(frozen=True)
class Grid:
    """The grids of a recording's stretches, one after the other."""

    begin: Floats
    end: Floats
    counts: Integers
    rate: float

    @classmethod
    def over(cls, stretches: Stretches, rate: float, fewest: int) -> Grid:
        """Lay a grid over every stretch that has at least `fewest` points."""
        points = np.floor((stretches.end - stretches.begin) * rate + EQUAL).astype(np.int64) + 1
        kept = points >= fewest
        return cls(stretches.begin[kept], stretches.end[kept], points[kept], rate)

    @property
    def first(self) -> Integers:
        """The number of each stretch's first point."""
        found: Integers = np.cumsum(self.counts) - self.counts
        return found

    def __len__(self) -> int:
        return int(self.counts.sum())

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the points in blocks: which ones, and their times."""
        first, total = self.first, len(self)
        for start in range(0, total, BLOCK):
            number = np.arange(start, min(total, start + BLOCK))
            own = np.searchsorted(first, number, side="right") - 1
            times = self.begin[own] + (number - first[own]) / self.rate
            yield slice(start, start + len(number)), np.minimum(times, self.end[own])


@dataclass(frozen=True)
class Neighbours:
    """The samples before and after each point of a block, and how far it is between them."""

    before: Integers | slice  # rows of the table
    after: Integers | None  # None where every point is a sample
    share: Floats | None

    @classmethod
    def of(cls, line: Timeline, times: Floats, rate: float) -> Neighbours:
        """Find the samples around some times, which increase and lie within the timeline."""
        t, near = line.t, EQUAL / rate
        first = int(np.searchsorted(t, times[0] - near))
        same = t[first : first + len(times)]
        if len(same) == len(times) and abs(same - times).max() <= near:
            if isinstance(line.rows, slice):
                start = first + line.rows.start
                return cls(slice(start, start + len(times)), None, None)
            return cls(line.rows[first : first + len(times)], None, None)
        # Only the part of the timeline that the block lies in: it stays in the cache.
        lowest = max(0, int(np.searchsorted(t, times[0], side="right")) - 1)
        part = t[lowest : int(np.searchsorted(t, times[-1], side="right")) + 1]
        before = np.searchsorted(part, times, side="right") - 1
        np.clip(before, 0, max(0, len(part) - 2), out=before)
        low, high = part[before], part[np.minimum(before + 1, len(part) - 1)]
        share = times - low
        apart = high - low
        on_low, on_high = share <= near, high - times <= near
        np.divide(share, apart, out=share, where=apart > 0)
        share[on_low], share[on_high] = 0.0, 1.0
        before += lowest
        after = np.minimum(before + 1, len(t) - 1)
        return cls(line.taken(before), line.taken(after), share)

    def interpolated(self, column: NDArray[Any]) -> Floats:
        """Return a column's values at the points."""
        low = column[self.before].astype(np.float64)
        if self.after is None or self.share is None:
            return low
        found = column[self.after].astype(np.float64)
        found -= low
        found *= self.share
        found += low
        return found

    def between(self, column: NDArray[Any]) -> Floats:
        """Do the same where values may be missing: a sample that a point falls on counts alone."""
        found = self.interpolated(column)
        if self.after is not None and self.share is not None:
            found = np.where(self.share <= 0, column[self.before], found)
            found = np.where(self.share >= 1, column[self.after], found)
        return found

    def nearest(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return the value of the sample that is nearest to each point; halfway, the earlier one.

        Rounding of the times does not decide between the two.
        """
        low: NDArray[Any] = column[self.before]
        if self.after is None or self.share is None:
            return low
        return np.where(self.share > 0.5 + EQUAL, column[self.after], low)
