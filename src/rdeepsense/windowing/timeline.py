"""The samples of one recording in order, and the stretches between their gaps.

A timeline is sorted, samples of one time as they stand in the table; once they are `once`, no time
comes twice. A gap is a step longer than a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdeepsense.arrays import Booleans, Floats, Integers

Rows = slice | Integers


@dataclass(frozen=True)
class Timeline:
    """Times in order, in seconds, and the row of the table that each belongs to."""

    t: Floats
    rows: Rows

    def taken(self, index: Integers) -> Integers:
        """Return the rows of some samples."""
        if isinstance(self.rows, slice):
            found: Integers = index + self.rows.start
            return found
        return self.rows[index]

    def where(self, kept: Booleans) -> Timeline:
        """Return the samples that are kept."""
        if kept.all():
            return self
        return Timeline(self.t[kept], self.taken(np.flatnonzero(kept)))

    @property
    def last(self) -> Booleans:
        """Whether each sample is the last of its time."""
        return np.append(self.t[1:] > self.t[:-1], True)[: len(self.t)]

    def once(self, wanted: Booleans | None = None) -> Timeline:
        """Return one sample of each time: the last, or the last that is wanted where any is."""
        last = self.last
        if wanted is None or last.all():
            return self.where(last)
        number, ends = np.arange(len(last)), np.flatnonzero(last)
        firsts = np.append(0, ends[:-1] + 1)
        best = np.maximum.reduceat(np.where(wanted, number, -1), firsts)
        chosen = np.where(best < 0, ends, best)
        return Timeline(self.t[chosen], self.taken(chosen))


@dataclass(frozen=True)
class Stretches:
    """Intervals of time, first and last sample included, in order and apart from each other."""

    begin: Floats
    end: Floats

    def common(self, other: Stretches) -> Stretches:
        """Return the time that lies in both."""
        first = np.searchsorted(other.end, self.begin)
        counts = np.maximum(np.searchsorted(other.begin, self.end, side="right") - first, 0)
        own = np.repeat(np.arange(len(self.begin)), counts)
        before = np.cumsum(counts) - counts
        theirs = np.arange(len(own)) - np.repeat(before, counts) + np.repeat(first, counts)
        return Stretches(
            np.maximum(self.begin[own], other.begin[theirs]),
            np.minimum(self.end[own], other.end[theirs]),
        )


def ordered(t: Floats, rows: Rows) -> tuple[Timeline, int]:
    """Sort the samples of a recording by their times `t`; returns how many were late."""
    late = int((np.diff(t) < 0).sum())
    if late:
        order = np.argsort(t, kind="stable")
        t = t[order]
        rows = order + rows.start if isinstance(rows, slice) else rows[order]
    return Timeline(t, rows), late


def stretches_of(line: Timeline, gap: float) -> Stretches:
    """Return what lies between the gaps of a timeline."""
    if not len(line.t):
        return Stretches(line.t, line.t)
    breaks = np.flatnonzero(np.diff(line.t) > gap)
    begin = line.t[np.append(0, breaks + 1)]
    return Stretches(begin, line.t[np.append(breaks, len(line.t) - 1)])
