"""The samples of one recording in order, and the stretches between their gaps.

A timeline is sorted, and no time comes twice: of samples with the same time the last one counts. A
gap is a step longer than a bound. A sensor's samples without a value are left out of its timeline,
so that a sensor that is silent makes a gap, and one that is logged less often than others does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdeepsense.arrays import Booleans, Floats, Integers

Rows = slice | Integers


@dataclass(frozen=True)
class Timeline:
    """Increasing times, in seconds, and the row of the table that each belongs to."""

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


def ordered(t: Floats, rows: Rows) -> tuple[Timeline, int, int]:
    """Sort the samples of a recording; returns how many were late and how many repeated.

    `t` are the times of these rows.
    """
    step = np.diff(t)
    late = int((step < 0).sum())
    if late:
        order = np.argsort(t, kind="stable")
        t = t[order]
        rows = order + rows.start if isinstance(rows, slice) else rows[order]
        step = np.diff(t)
    last = step > 0
    repeated = len(last) - int(last.sum())
    line = Timeline(t, rows)
    if repeated:
        line = line.where(np.append(last, True))
    return line, late, repeated


def stretches_of(line: Timeline, gap: float) -> Stretches:
    """Return what lies between the gaps of a timeline."""
    if not len(line.t):
        return Stretches(line.t, line.t)
    breaks = np.flatnonzero(np.diff(line.t) > gap)
    begin = line.t[np.append(0, breaks + 1)]
    return Stretches(begin, line.t[np.append(breaks, len(line.t) - 1)])
