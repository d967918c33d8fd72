"""Recordings on a common time grid: sample times, gaps, rates, and the labels of windows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.errors import InputError
from rdeepsense.windowing.recipe import ABSENT, ROUNDED, Recipe, Table, coded, numbers_of, values_of

# --------------------------------------------------------------------------------------------------
# Time in integers, for equal grids on every machine
#
# A rate p / q samples a second, of whole p and q, has points at
#
#     g_k = begin + k 10^6 q / p microseconds
#
# and each is a number of microseconds and of p-ths of one. A sample within a millionth of a period
# of a point, that is q of those p-ths, is taken as it is; see `windowing.grid`.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Ordered samples of a recording, and segments between gaps
#
# A timeline is sorted, samples of one time as they stand in the table; once they are `once`, no
# time comes twice. A gap is a step longer than a bound.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# The report on a log: samples and windows, used and dropped
# --------------------------------------------------------------------------------------------------

NO_TIME = "without a time"
REPEATED = "of a repeated time: each sensor's last one counts"
TOO_SHORT = "in stretches shorter than a window"
GAPS = "over a gap"
IMPURE = "of no label that is pure enough"
UNLABELLED = "without a label"


@dataclass(frozen=True)
class WindowReport:
    """Counts of samples and windows, and what was decided on the way."""

    samples: int
    recordings: int
    windows: int
    found_rate: float  # samples a second, by the median step
    sorted_samples: int = 0  # that came after a later one
    lost_samples: Mapping[str, int] = field(default_factory=dict)
    lost_windows: Mapping[str, int] = field(default_factory=dict)
    said: tuple[str, ...] = ()  # what was resampled, trimmed or guessed

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return a line for each thing to know."""
        found = [
            f"samples   {self.samples:,} in {self.recordings:,} recording"
            f"{'' if self.recordings == 1 else 's'}, {self.found_rate:.4g} a second",
            *(f"note      {one}" for one in self.said),
        ]
        if self.sorted_samples:
            found.append(f"sorted    {self.sorted_samples:,} samples that came after a later one")
        for why, count in self.lost_samples.items():
            found.append(f"lost      {count:,} samples {why}")
        found.append(f"windows   {self.windows:,}")
        for why, count in self.lost_windows.items():
            found.append(f"lost      {count:,} windows {why}")
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines())


# --------------------------------------------------------------------------------------------------
# Resampling: linear interpolation at equal steps, in blocks
#
# Every stretch has a grid of its own, which begins with its first sample:
#
#     g_k = begin + k / rate,    x(g) = x_i + w (x_(i+1) - x_i),    w = (g - t_i) / (t_(i+1) - t_i)
#
# for the neighbours t_i <= g < t_(i+1). A sample within a millionth of a period of g is taken as it
# is, so that a regular log passes unchanged, however its times were rounded.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Samples of each sensor in a recording
#
# A sensor's samples without a value are left out of its timeline, so that a sensor that is silent
# makes a gap, and one that is logged less often than others does not. Rows of one time are one
# sample: each sensor's last one counts, whichever row it is in, so that sensors which come in rows
# of their own are all heard.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordingSamples:
    """The samples of a recording: all of them, one of each time, and those of each sensor."""

    every: Timeline  # a time may come twice
    line: Timeline
    sensors: tuple[Timeline, ...]
    repeated: int  # rows of which a later one of the same time has taken the place
    merged: int  # further rows that share their time with another one

    @classmethod
    def of(cls, every: Timeline, sensors: Sequence[Sequence[NDArray[Any]]]) -> RecordingSamples:
        """Find the samples of each sensor, given its columns."""
        line = every.once()
        own = [with_values(every, columns) for columns in sensors]
        if line is every:
            return cls(every, line, tuple(own), 0, 0)
        replaced = [one.taken(np.flatnonzero(~one.last)) for one in own]
        repeated = len(np.unique(np.concatenate(replaced)))
        # One and the same timeline is interpolated in once.
        kept = (line if one is every else one.once() for one in own)
        return cls(every, line, tuple(kept), repeated, len(every.t) - len(line.t) - repeated)


def with_values(line: Timeline, columns: Sequence[NDArray[Any]]) -> Timeline:
    """Return the samples with a value in each of some columns."""
    for column in columns:
        if column.dtype.kind == "f":
            line = line.where(np.isfinite(column[line.rows]))
    return line


# --------------------------------------------------------------------------------------------------
# The rate of a log, and the sizes that follow from it
# --------------------------------------------------------------------------------------------------

SAME = 0.02  # rates closer than this, by ratio, are the same
ABSURD = 20.0  # a ratio of rates that tells of another unit
PERIODS, SHORTEST_GAP = 3.0, 0.1  # a gap is longer than both: periods, and seconds
MOST_STEPS = 1 << 20  # that a median is taken of


def found_rate(lines: Sequence[Timeline], name: str, samples: int) -> float:
    """Return samples a second: one over the median step, recordings weighted by their steps."""
    medians, counts = [], []
    for line in lines:
        if len(line.t) > 1:
            steps = np.diff(line.t[: MOST_STEPS + 1])
            medians.append(float(np.median(steps)))
            counts.append(len(line.t) - 1)
    if not medians:
        raise InputError(
            f"the time {name!r} goes nowhere: its {samples:,} samples have one time in each "
            "recording"
        )
    order = np.argsort(medians)
    running = np.cumsum(np.array(counts)[order])
    middle = int(order[int(np.searchsorted(running, running[-1] / 2))])
    return 1 / medians[middle]


def check_repeated(repeated: int, samples: int, name: str, by: Sequence[str]) -> None:
    """Refuse a log in which most times come twice: several recordings are taken for one."""
    if 2 * repeated > samples:
        told = f"by = {list(by)}" if by else "by is not given"
        raise InputError(
            f"{repeated:,} of {samples:,} samples repeat a time {name!r} of their recording, and "
            f"{told}; name the columns that tell recordings apart"
        )


def with_rate_and_gap(recipe: Recipe, found: float, name: str) -> tuple[Recipe, list[str]]:
    """Return the recipe with rate and gap, and what is to be said about them."""
    said, rate = [], recipe.rate
    if rate is None:
        rate = rounded(found)
        said.append(f"rate {rate:g} a second: the median of {name!r}, {found:.6g}, rounded")
    elif not 1 / ABSURD <= found / rate <= ABSURD:
        raise InputError(
            f"rate = {rate:g}: the time {name!r} has {found:.4g} samples a second; is its unit "
            "another one? time_unit says which"
        )
    elif abs(math.log(found / rate)) > SAME:
        said.append(f"{name!r} runs at {found:.4g} samples a second; resampled to {rate:g}")
    gap = recipe.gap
    if gap is None:
        gap = max(PERIODS / rate, PERIODS / found, SHORTEST_GAP)
    recipe.check_length(rate)
    known = replace(recipe, rate=rate, gap=gap)
    for what, given, made in (
        ("window", recipe.window, known.length),
        ("hop", recipe.hop, known.step),
    ):
        exact = given * rate
        if abs(exact - made) > ROUNDED * max(1.0, exact):
            said.append(
                f"a {what} of {given:g} s has {exact:.6g} samples at {rate:g} a second; {made} it "
                f"is, {made / rate:.4g} s"
            )
    return known, said


def rounded(rate: float) -> float:
    """Round to a whole number, or to two digits below ten."""
    if rate >= 10:
        return float(round(rate))
    digits = 1 - math.floor(math.log10(rate))
    return round(rate, digits)


# --------------------------------------------------------------------------------------------------
# Recordings of a log: rows with equal values in some columns
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recordings:
    """The rows of each recording, and for each column of `by` its value."""

    rows: list[Rows]
    groups: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.rows)


def recordings_of(table: Table, by: Sequence[str], rows: int) -> Recordings:
    """Tell the recordings apart; without `by` the log is one."""
    if not by:
        return Recordings([slice(0, rows)], {})
    changes, codes, distinct = np.zeros(rows, bool), [], []
    changes[0] = True
    for name in by:
        own, values = coded(table, name)
        if (own == ABSENT).any():
            raise InputError(
                f"by: column {name!r} holds no value in {int((own == ABSENT).sum()):,} rows, first "
                f"in row {int(np.argmax(own == ABSENT))} (the first row is 0)"
            )
        changes[1:] |= own[1:] != own[:-1]
        codes.append(own)
        distinct.append(values)
    heads = np.flatnonzero(changes)
    stops = np.append(heads[1:], rows)
    keys, run = np.unique(np.stack([own[heads] for own in codes], 1), axis=0, return_inverse=True)
    groups = {name: distinct[k][keys[:, k]] for k, name in enumerate(by)}
    order = np.argsort(run.reshape(-1), kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(run.reshape(-1)))[:-1])
    return Recordings([_rows(heads[part], stops[part]) for part in parts], groups)


def with_times(rows: Rows, known: Booleans | None) -> Rows:
    """Leave out the rows that have no time."""
    if known is None or known[rows].all():
        return rows
    if isinstance(rows, slice):
        return np.flatnonzero(known[rows]) + int(rows.start)
    return rows[known[rows]]


def _rows(heads: NDArray[np.int64], stops: NDArray[np.int64]) -> Rows:
    if len(heads) == 1:
        return slice(int(heads[0]), int(stops[0]))
    return np.concatenate([np.arange(a, b) for a, b in zip(heads, stops, strict=True)])


# --------------------------------------------------------------------------------------------------
# Labels of windows: the majority class, the last value or the mean
#
# Sums over windows are differences of running sums, so that nothing is done window by window:
# sum of x over [s, s + L) = S_(s+L) - S_s.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Majority:
    """The most frequent label of each window, and its share of the window's samples."""

    code: Integers  # -1 where no sample has a label
    share: Floats

    @classmethod
    def of(cls, codes: NDArray[Any], starts: Integers, length: int) -> Majority:
        """Count labels; of two that are as frequent the first in order wins."""
        code = np.full(len(starts), ABSENT, np.int64)
        most = np.zeros(len(starts), np.int64)
        for label in np.unique(codes[codes != ABSENT]) if len(starts) else ():
            count = _sums(codes == label, np.int64, starts, length)
            more = count > most
            code[more], most[more] = label, count[more]
        return cls(code, most / length)


def mean_of(values: Floats, starts: Integers, length: int) -> Floats:
    """Return the mean of the values that are known in each window; NaN where none is."""
    known = np.isfinite(values)
    counts = _sums(known, np.int64, starts, length)
    centre = float(values[known].mean()) if known.any() else 0.0
    # Around their centre, so that running sums stay small.
    sums = _sums(np.where(known, values - centre, 0.0), np.float64, starts, length)
    found: Floats = np.full(len(starts), np.nan)
    some = counts > 0
    found[some] = centre + sums[some] / counts[some]
    return found


def at_end(values: NDArray[Any], starts: Integers, length: int) -> NDArray[Any]:
    """Return the value of each window's last sample."""
    found: NDArray[Any] = values[starts + length - 1]
    return found


def _sums(
    values: NDArray[Any] | Booleans, kind: type[np.generic], starts: Integers, length: int
) -> NDArray[Any]:
    running = np.zeros(len(values) + 1, kind)
    np.cumsum(values, out=running[1:])
    found: NDArray[Any] = running[starts + length] - running[starts]
    return found


# --------------------------------------------------------------------------------------------------
# Labels of a log, on a grid and by window
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """Columns with the truth: codes of labels, whose `distinct` values are known, or numbers."""

    columns: list[NDArray[Any]]
    distinct: NDArray[Any] | None  # None for numbers

    def room_for(self, points: int) -> NDArray[Any]:
        """Return an array for the truth at so many points."""
        if self.distinct is not None:
            return np.empty(points, np.int32)
        return np.empty((points, len(self.columns)))

    def lines(self, heard: RecordingSamples) -> list[Timeline]:
        """Return for each column one sample of each time, with a truth where any of it has one."""
        if heard.line is heard.every:
            return [heard.line] * len(self.columns)
        own = (column[heard.every.rows] for column in self.columns)
        if self.distinct is not None:
            return [heard.every.once(codes != ABSENT) for codes in own]
        return [heard.every.once(np.isfinite(numbers)) for numbers in own]

    def at(self, near: Sequence[Neighbours]) -> NDArray[Any]:
        """Return the truth at points: the nearest sample's label, or numbers in between.

        `near` are the samples around the points that each column is asked about.
        """
        if self.distinct is not None:
            return near[0].nearest(self.columns[0])
        pairs = zip(near, self.columns, strict=True)
        return np.stack([own.between(column) for own, column in pairs], 1)

    def judged(
        self, values: NDArray[Any] | None, first: Integers, recipe: Recipe, lost: Counter[str]
    ) -> tuple[Booleans, NDArray[Any]]:
        """Return which windows of a recording have a truth, and that of each of them."""
        assert values is not None
        length = recipe.length
        if self.distinct is None:
            one = mean_of if recipe.target == "mean" else at_end
            found = np.stack([one(own, first, length) for own in values.T], 1)
            kept = np.isfinite(found).all(1)
            lost[UNLABELLED] += int((~kept).sum())
            return kept, found[kept]
        if recipe.target == "end":
            ends = at_end(values, first, length)
            kept = ends != ABSENT
            lost[UNLABELLED] += int((~kept).sum())
            return kept, ends[kept]
        majority = Majority.of(values, first, length)
        known = majority.code != ABSENT
        # Shares are counts over a length; a bound of 0.8 must not refuse 4 of 5.
        kept = known & (majority.share >= recipe.purity - 1e-9)
        lost[UNLABELLED] += int((~known).sum())
        lost[IMPURE] += int((known & ~kept).sum())
        return kept, majority.code[kept]

    def in_words(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return labels for their codes; numbers stay, (windows,) where there is one."""
        if self.distinct is not None:
            found: NDArray[Any] = self.distinct[values]
            return found
        return values[:, 0] if values.shape[1] == 1 else values


def truth_of(table: Table, recipe: Recipe) -> Truth | None:
    """Read the truth; None where the recipe names no label.

    Numbers are averaged or taken between samples; "majority", and "end" of text, yes/no or whole
    numbers, are of labels.
    """
    if not recipe.label:
        return None
    is_label = recipe.target == "majority"
    if recipe.target == "end" and len(recipe.label) == 1:
        is_label = values_of(table, recipe.label[0]).dtype.kind != "f"
    if is_label:
        codes, distinct = coded(table, recipe.label[0])
        return Truth([codes], distinct)
    return Truth([numbers_of(table, name) for name in recipe.label], None)
