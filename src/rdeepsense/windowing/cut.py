"""`rds.windows`: cut a log into windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.errors import InputError
from rdeepsense.windowing import grid as reasons
from rdeepsense.windowing.grid import (
    PERIODS,
    SHORTEST_GAP,
    Grid,
    Neighbours,
    RecordingSamples,
    Stretches,
    Timeline,
    Truth,
    WindowReport,
    check_repeated,
    found_rate,
    ordered,
    recordings_of,
    stretches_of,
    truth_of,
    with_rate_and_gap,
    with_times,
    with_values,
)
from rdeepsense.windowing.recipe import (
    TARGETS,
    TIME_UNITS,
    Recipe,
    Table,
    check_columns,
    check_lengths,
    clock_of,
    listed,
    need_double,
    numbers_of,
    seconds,
)

# --------------------------------------------------------------------------------------------------
# Windows of one recording: common time, grid and starts
# --------------------------------------------------------------------------------------------------

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Plan:
    """What is to be interpolated where, and what is lost of a recording."""

    heard: RecordingSamples
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


def plan_of(recipe: Recipe, heard: RecordingSamples) -> Plan:
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


# --------------------------------------------------------------------------------------------------
# Windows as an array that is computed on access
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Windows:
    """Windows (n, time, channels) of a log, of which only the samples are in memory.

    Indexing gathers: ``w[3]`` is one window, ``w[:100]`` and ``w[indices]`` are arrays of them,
    ``np.asarray(w)`` is all. Overlapping windows share their samples until then. Estimators take
    a `Windows` as X, and keep its recipe.

    Parameters
    ----------
    y : the label or value of each window; None without `label`.
    groups : for each column of `by`, the value of each window's recording.
    starts : the time of each window's first sample, in seconds or as a date.
    recipe : how they were cut, with the rate and the gap that were found.
    report : what became of the log's samples and windows.
    """

    signal: NDArray[Any]  # float32; float64 where the recipe says so
    first: Integers  # the sample that each window begins with
    y: NDArray[Any] | None
    groups: Mapping[str, NDArray[Any]]
    starts: NDArray[Any]
    recipe: Recipe
    report: WindowReport

    @property
    def sensors(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of each sensor, in the order of the channels."""
        return self.recipe.sensors

    @property
    def ends(self) -> NDArray[Any]:
        """The time of each window's last sample."""
        assert self.recipe.rate is not None
        length = (self.recipe.length - 1) / self.recipe.rate
        if self.starts.dtype.kind == "M":
            return self.starts + np.timedelta64(round(length * 1e9), "ns")
        found: NDArray[Any] = self.starts + length
        return found

    @property
    def runs(self) -> list[slice]:
        """Windows that follow each other by one hop within their recording, run by run."""
        hop = self.recipe.step / self.recipe.rate if self.recipe.rate else self.recipe.hop
        apart = np.diff(self.starts)
        passed = apart / np.timedelta64(1, "s") if self.starts.dtype.kind == "M" else apart
        follows = np.abs(passed - hop) < 1e-3 * hop
        for values in self.groups.values():
            follows &= values[1:] == values[:-1]
        begins = np.flatnonzero(~follows) + 1
        ends = [0, *begins.tolist(), len(self.first)]
        return [slice(a, b) for a, b in pairwise(ends) if b > a]

    @property
    def shape(self) -> tuple[int, int, int]:
        """What `np.asarray` will have."""
        return len(self.first), self.recipe.length, self.signal.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a sample: float32, or float64 where that does not tell samples apart."""
        return self.signal.dtype

    @property
    def ndim(self) -> int:
        """Three: windows, time, channels."""
        return 3

    def __len__(self) -> int:
        return len(self.first)

    def gather(self, indices: Any) -> NDArray[Any]:  # Any: whatever numpy takes between brackets
        """Return some windows as an array."""
        first = self.first[indices]
        if not len(self.signal):
            return np.zeros((*np.shape(first), *self.shape[1:]), self.dtype)
        samples, channels = self.signal.strides
        rows = len(self.signal) - self.recipe.length + 1
        view = np.lib.stride_tricks.as_strided(
            self.signal, (rows, *self.shape[1:]), (samples, samples, channels), writeable=False
        )
        found: NDArray[Any] = np.array(view[first])
        return found

    def __getitem__(self, indices: Any) -> NDArray[Any]:
        if isinstance(indices, tuple):
            raise InputError("windows are taken by one index; gather them, then take of the array")
        return self.gather(indices)

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError("windows are gathered, which copies")
        found = self.gather(slice(None))
        return found if dtype is None else found.astype(dtype, copy=False)

    def __repr__(self) -> str:
        sensors = ", ".join(f"{name} {len(own)}" for name, own in self.sensors.items())
        return f"Windows(shape={self.shape}, sensors=({sensors}), rate={self.recipe.rate:g})"


# --------------------------------------------------------------------------------------------------
# Check for several recordings that were read as one
# --------------------------------------------------------------------------------------------------

FEWEST = 10  # samples in a row of the table; late ones of a lossy radio are fewer


def check_overlap(
    line: Timeline,
    sensors: Sequence[Sequence[NDArray[Any]]],
    gap: float | None,
    time: str,
    by: Sequence[str],
) -> None:
    """Refuse a recording whose time falls back and runs over the same span again.

    `line` is in the order of the table. Of each sensor, samples between two others that are no gap
    apart and come from before or after the fall would be interleaved with them. Late samples that
    fill a gap, samples that come twice with the same values, and samples in any order are accepted.
    """
    steps = np.diff(line.t)
    if not len(steps) or steps.min() >= 0:
        return
    if gap is None:
        ahead = np.diff(np.unique(line.t))
        gap = max(SHORTEST_GAP, PERIODS * float(np.median(ahead))) if len(ahead) else SHORTEST_GAP
    if steps.min() >= -gap:
        return
    for columns in sensors:
        own = with_values(line, columns)
        inside, passes = _inside(own, columns, gap)
        longest, where = _longest(inside, passes)
        if longest >= FEWEST:
            falls = np.flatnonzero(np.diff(passes)) + 1
            fall = int(falls[max(0, int(np.searchsorted(falls, where, side="right")) - 1)])
            row = int(own.taken(np.array([fall]))[0])
            back = float(own.t[fall - 1] - own.t[fall])
            told = f"by = {list(by)}" if by else "by is not given"
            raise InputError(
                f"{time!r} falls back by {back:.4g} s in row {row:,} (the first row is 0), and "
                f"{int(inside.sum()):,} of {len(own.t):,} samples lie between samples of another "
                f"run over the same time; {told}; name the columns that tell recordings apart, "
                "and give times in UTC if a clock was set back"
            )


def _inside(
    line: Timeline, columns: Sequence[NDArray[Any]], gap: float
) -> tuple[Booleans, Integers]:
    """Tell for each sample whether it lies between near ones of other passes, and its pass."""
    passes = np.cumsum(np.append(False, np.diff(line.t) < -gap))[: len(line.t)]
    order = np.argsort(line.t, kind="stable")
    t, number = line.t[order], passes[order]
    heads = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    before = np.append(-np.inf, t[heads[1:] - 1])
    after = np.append(t[heads[1:]], np.inf)
    same = np.zeros(len(t), bool)  # samples that come twice, with the same values
    twice = np.flatnonzero(t[1:] == t[:-1])
    if len(twice):
        rows = line.taken(order)
        alike = np.all([c[rows[twice]] == c[rows[twice + 1]] for c in columns], axis=0)
        same[twice[alike]] = same[twice[alike] + 1] = True
    inside = np.zeros(len(t), bool)
    inside[order] = np.repeat(after - before <= gap, np.diff(np.append(heads, len(t)))) & ~same
    return inside, passes


def _longest(inside: Booleans, passes: Integers) -> tuple[int, int]:
    """Return the length of the longest streak within one pass, and where it begins."""
    if not len(inside):
        return 0, 0
    changes = (np.diff(inside.astype(np.int8)) != 0) | (np.diff(passes) != 0)
    heads = np.append(0, np.flatnonzero(changes) + 1)
    lengths = np.where(inside[heads], np.diff(np.append(heads, len(inside))), 0)
    best = int(np.argmax(lengths))
    return int(lengths[best]), int(heads[best])


# --------------------------------------------------------------------------------------------------
# Windows that share no sample, for splits
# --------------------------------------------------------------------------------------------------

FEWEST_RECORDINGS = 5
PARTS = (10, 5, 3, 2)  # stretches of time that stand for recordings; fewer where windows are long


def apart(windows: Windows) -> tuple[NDArray[Any], Booleans, str]:
    """Return the group of each window, which windows are used, and a sentence that says so.

    Groups are recordings; and of few recordings stretches of time, between which windows that
    reach over are left out.
    """
    codes = np.zeros(len(windows), np.int64)
    for values in windows.groups.values():
        distinct, own = np.unique(values, return_inverse=True)
        codes = np.unique(codes * len(distinct) + own.reshape(-1), return_inverse=True)[1]
    recordings = int(codes.max(initial=-1)) + 1
    every = np.ones(len(windows), bool)
    if recordings >= FEWEST_RECORDINGS:
        return codes, every, f"groups are the {recordings:,} recordings"
    for parts in PARTS:
        group, kept = _stretches(windows, codes, parts)
        if 2 * kept.sum() >= len(windows):
            break
    return (
        group,
        kept,
        f"{recordings} recordings are few; groups are {parts} stretches of time, and "
        f"{int((~kept).sum()):,} windows that reach from one into the next are left out",
    )


def _stretches(windows: Windows, codes: Integers, parts: int) -> tuple[Integers, Booleans]:
    # Windows lie in the order of recordings and of time.
    part = np.arange(len(windows)) * parts // max(1, len(windows))
    group = codes * parts + part
    last = windows.first + windows.recipe.length
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    nearest = np.append(windows.first[begins[1:]], np.iinfo(np.int64).max)
    number = np.searchsorted(begins, np.arange(len(windows)), side="right") - 1
    return group, last <= nearest[number]


def group_names(windows: Windows, group: Integers) -> NDArray[np.str_]:
    """Return the name of each window's group, as a user knows it: its recording, and since when."""
    heads = np.flatnonzero(np.diff(group, prepend=-1))
    stops = np.append(heads[1:], len(group))
    columns = windows.groups.items()
    recordings = [
        ", ".join(f"{name} {one[k]}" if len(columns) > 1 else str(one[k]) for name, one in columns)
        for k in heads
    ]
    if len(set(recordings)) < len(heads):  # stretches of time
        starts = windows.starts[heads]
        since = starts if starts.dtype.kind == "M" else [f"{start:g} s" for start in starts]
        recordings = [f"{own} from {at}".strip() for own, at in zip(recordings, since, strict=True)]
    return np.repeat(np.array(recordings, dtype=str), stops - heads)


# --------------------------------------------------------------------------------------------------
# From a log to windows, recording by recording
# --------------------------------------------------------------------------------------------------


def windows(
    table: Table,
    time: str,
    sensors: Mapping[str, Sequence[str]],
    window: str | float,
    hop: str | float | None = None,
    rate: float | None = None,
    by: str | Sequence[str] = (),
    label: str | Sequence[str] | None = None,
    purity: float = 0.5,
    target: str = "majority",
    gap: str | float | None = None,
    time_unit: str | None = None,
    rounding: Mapping[str, float] | None = None,
) -> Windows:
    """Cut a sensor log into windows (n, time, channels) of equal length and rate.

    Samples are sorted by time within their recording; of rows with the same time each sensor's
    last sample counts. They are resampled to `rate` by linear interpolation between neighbours. No
    window reaches over a gap, over a sensor's silence, or from one recording into another. The
    `report` of what comes back says how many samples and windows were lost, and why.

    Parameters
    ----------
    table : of pandas, polars or pyarrow, or a dictionary of arrays; one row per sample.
    time : its column of times: seconds, dates, or whole numbers with a `time_unit`.
    sensors : the columns of each sensor, by its name.
    window, hop : durations, such as "5s", "200ms" or 2.5 (seconds); the hop, from one window's
        begin to the next one's, is a window by default.
    rate : samples a second; by default the median one of the log, rounded.
    by : columns that tell recordings apart.
    label : column with the truth; several for numbers.
    purity : the share of a window's samples that must have its majority label.
    target : "majority" for labels; "mean" over the window, or the value at its "end".
    gap : time without a sample that ends a window; by default three periods, and 0.1 s at least.
    time_unit : of whole numbers: "s", "ms", "us" or "ns".
    rounding : the step that a sensor rounds to where the model will run, by its name, such as
        {"accelerometer": 0.1} in m/s2 for a browser; nothing is rounded here, but networks that
        are chosen for these windows are trained on rounded ones as well.
    """
    for name, value, accepted in (
        ("target", target, TARGETS),
        ("time_unit", time_unit, (None, *TIME_UNITS)),
    ):
        if value not in accepted:
            known = ", ".join(repr(one) for one in accepted)
            raise InputError(f"{name} = {value!r} is unknown; accepted: {known}")
    for name, number in (("rate", rate), ("purity", purity)):
        if isinstance(number, bool) or not isinstance(number, int | float | None):
            raise InputError(f"{name} = {number!r} is no number")
    if not isinstance(sensors, Mapping):
        raise InputError(
            f"sensors = {sensors!r:.80} is no dictionary of sensors with their columns, such as "
            '{"accelerometer": ["ax", "ay", "az"]}'
        )
    length = seconds("window", window)
    recipe = Recipe(
        time,
        {name: listed(f"sensors[{name!r}]", own) for name, own in dict(sensors).items()},
        length,
        length if hop is None else seconds("hop", hop),
        None if rate is None else float(rate),
        None if gap is None else seconds("gap", gap),
        listed("by", by),
        listed("label", label),
        target,
        float(purity),
        time_unit,
        rounding or {},
    )
    return cut(recipe, table, is_first=True)


def cut(recipe: Recipe, table: Table, is_first: bool = False) -> Windows:
    """Cut a log by a recipe; what it leaves open is found in the log.

    Of the `first` log it is also found whether float32 tells its samples apart.
    """
    check_columns(table, "time", [recipe.time])
    check_columns(table, "sensors", recipe.channels)
    check_columns(table, "by", recipe.by)
    check_columns(table, "label", recipe.label)
    clock = clock_of(table, recipe.time, recipe.time_unit)
    samples = len(clock.seconds)
    check_lengths(table, [*recipe.channels, *recipe.by, *recipe.label], samples, recipe.time)
    recordings = recordings_of(table, recipe.by, samples)
    columns = {name: numbers_of(table, name) for name in recipe.channels}
    double = need_double(columns) if is_first else []
    if double:
        recipe = replace(recipe, double=True)
    sensors = [[columns[name] for name in names] for names in recipe.sensors.values()]
    lost, heard, late = Counter[str](), [], 0
    for rows in recordings.rows:
        kept = with_times(rows, clock.known)
        check_overlap(
            Timeline(clock.seconds[kept], kept), sensors, recipe.gap, recipe.time, recipe.by
        )
        line, behind = ordered(clock.seconds[kept], kept)
        heard.append(RecordingSamples.of(line, sensors))
        late, lost[reasons.REPEATED] = late + behind, lost[reasons.REPEATED] + heard[-1].repeated
    if clock.known is not None:
        lost[reasons.NO_TIME] = int((~clock.known).sum())
    found = found_rate([own.line for own in heard], recipe.time, samples)
    check_repeated(lost[reasons.REPEATED], samples, recipe.time, recipe.by)
    recipe, said = with_rate_and_gap(recipe, found, recipe.time)
    if double:
        named = ", ".join(double)
        said.append(f"samples are float64: float32 does not tell those of {named} apart")
    if merged := sum(own.merged for own in heard):
        said.append(f"{merged:,} rows are one sample with another of the same time")
    plans = [plan_of(recipe, own) for own in heard]
    for plan in plans:
        lost.update(plan.lost_samples)
    signal: NDArray[Any] = np.empty(
        (sum(len(plan.grid) for plan in plans), len(columns)), recipe.dtype
    )
    truth = truth_of(table, recipe)
    lost_windows = Counter[str]({reasons.GAPS: sum(plan.over_gaps for plan in plans)})
    parts: list[tuple[Integers, NDArray[Any], NDArray[Any] | None, int]] = []
    begin = 0
    for number, plan in enumerate(plans):
        stop = begin + len(plan.grid)
        values = plan.fill(signal[begin:stop], columns, truth)
        first = plan.first()
        y = None
        if truth is not None:
            known, y = truth.judged(values, first, recipe, lost_windows)
            first = first[known]
        if len(first):
            parts.append((first + begin, plan.times(first), y, number))
        begin = stop
    made = sum(len(part[0]) for part in parts)
    report = WindowReport(
        samples,
        len(recordings),
        made,
        found,
        late,
        {why: count for why, count in lost.items() if count},
        {why: count for why, count in lost_windows.items() if count},
        tuple(said),
    )
    if not made:
        _refuse_none(recipe, plans, report)
    number_of = np.repeat([part[3] for part in parts], [len(part[0]) for part in parts])
    return Windows(
        signal,
        np.concatenate([part[0] for part in parts]),
        None if truth is None else _joined(truth, parts),
        {name: values[number_of] for name, values in recordings.groups.items()},
        clock.own(np.concatenate([part[1] for part in parts])),
        recipe,
        report,
    )


def _joined(truth: Truth, parts: Sequence[tuple[Any, Any, Any, Any]]) -> NDArray[Any]:
    return truth.in_words(np.concatenate([part[2] for part in parts]))


def _refuse_none(recipe: Recipe, plans: Sequence[Plan], report: WindowReport) -> None:
    longest = max((plan.longest for plan in plans), default=0.0)
    why = [f"{count:,} samples {reason}" for reason, count in report.lost_samples.items()]
    why += [f"{count:,} windows {reason}" for reason, count in report.lost_windows.items()]
    assert recipe.gap is not None
    raise InputError(
        f"no window of {recipe.window:g} s is left: the longest stretch of {recipe.time!r} without "
        f"a gap of more than {recipe.gap:.4g} s has {longest:.4g} s, at {report.found_rate:.4g} "
        f"samples a second; lost: {'; '.join(why) or 'nothing'}"
    )
