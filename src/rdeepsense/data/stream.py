"""Training from Parquet files: one-pass statistics, splits, and shares of workers."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense._progress import Progress, progress_for
from rdeepsense.arrays import SINGLE, Booleans, Floats, Integers, resolution
from rdeepsense.data.checks import FEWEST_ROWS, check_whole, gaps_of
from rdeepsense.data.columns import GROUPS, LABELS, refuse_kind
from rdeepsense.data.parquet import (
    NUMBER,
    ArrowTable,
    ParquetTable,
    first_repeated,
    labels,
    numbers,
)
from rdeepsense.data.rows import SET_ASIDE, Pair
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import row_hashes, validation_fraction
from rdeepsense.errors import InputError, nearest

# --------------------------------------------------------------------------------------------------
# One-pass statistics: moments and a random sample
# --------------------------------------------------------------------------------------------------


@dataclass
class Moments:
    """Count, mean, sum of squared deviations and extremes of each column, over what is not NaN."""

    count: Floats
    mean: Floats
    squares: Floats
    low: Floats
    high: Floats
    resolution: float = SINGLE  # of the type that the values had

    @classmethod
    def none(cls, columns: int) -> Moments:
        """Return the moments of no rows."""
        zeros, infinite = np.zeros(columns), np.full(columns, np.inf)
        return cls(zeros, zeros, zeros, infinite, -infinite)

    @classmethod
    def of(cls, values: NDArray[Any]) -> Moments:
        there = ~np.isnan(values)
        count = there.sum(0).astype(np.float64)
        mean = np.where(there, values, 0.0).sum(0, dtype=np.float64) / np.maximum(count, 1)
        squares = np.where(there, values - mean, 0.0)
        low = np.where(there, values, np.inf).min(0, initial=np.inf)
        high = np.where(there, values, -np.inf).max(0, initial=-np.inf)
        with np.errstate(over="ignore"):  # a variance that is no number is refused with its column
            squared = np.square(squares).sum(0)
        return cls(count, mean, squared, low, high, resolution(values.dtype))

    def add(self, other: Moments) -> None:
        """Join two parts (Chan, Golub and LeVeque, 1983).

        mean = mean_a + d n_b / n,  squares = squares_a + squares_b + d^2 n_a n_b / n
        """
        total = np.maximum(self.count + other.count, 1)
        difference = other.mean - self.mean
        self.mean = self.mean + difference * other.count / total
        both = self.count * other.count / total
        with np.errstate(over="ignore", invalid="ignore"):
            self.squares = self.squares + other.squares + difference**2 * both
        self.count = self.count + other.count
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.resolution = min(self.resolution, other.resolution)

    def scaler(self, resolution: float | None = None) -> Scaler:
        """Return the scale of these rows; a `resolution` is that of targets."""
        std = np.sqrt(self.squares / np.maximum(self.count, 1))
        moments = self.mean, std, self.low, self.high
        if resolution is None:
            return Scaler.of_moments(*moments, self.resolution)
        return Scaler.of_moments(*moments, resolution, resolution)


class Reservoir:
    """At most `most` rows, those with the smallest keys: a fair sample where keys are random."""

    def __init__(self, most: int) -> None:
        self._most, self._bound = most, np.inf
        self._kept: list[tuple[NDArray[Any], ...]] = []

    def add(self, X: NDArray[Any], y: NDArray[Any], keys: Floats) -> None:
        chosen = keys < self._bound
        if chosen.any():
            self._kept.append((keys[chosen], X[chosen], y[chosen]))
            if sum(len(kept[0]) for kept in self._kept) > 2 * self._most:
                self._trim()

    def rows(self) -> tuple[NDArray[Any], NDArray[Any]]:
        self._trim()
        _, X, y = self._kept[0]
        return X, y

    def __len__(self) -> int:
        return min(self._most, sum(len(kept[0]) for kept in self._kept))

    def _trim(self) -> None:
        keys, X, y = (np.concatenate(column) for column in zip(*self._kept, strict=True))
        order = np.argsort(keys, kind="stable")[: self._most]
        if len(keys) > self._most:
            self._bound = float(keys[order[-1]])
        order.sort()  # as they lie in the files
        self._kept = [(keys[order], X[order], y[order])]


# --------------------------------------------------------------------------------------------------
# The first pass over a table larger than memory
#
# Which side a row is on is decided by a hash of its inputs, or of its group, so equal inputs are
# never on both sides and no list of them is needed; a bit for each row remembers it.
# --------------------------------------------------------------------------------------------------

CHUNK = 65_536  # rows at a time
PATIENCE = 2.0  # seconds without a word about the progress
MANY_GROUPS = 10_000
SAMPLE = 50_000  # training rows kept, for quantiles and the last layer's matrix


@dataclass(frozen=True)
class Columns:
    """The use of each column."""

    inputs: list[str]
    targets: list[str]
    groups: str | None
    classes: bool  # whether the target is a label
    missing: str

    @property
    def all(self) -> list[str]:
        return [*self.inputs, *self.targets, *([self.groups] if self.groups else [])]


@dataclass(frozen=True)
class Bounds:
    """Bounds of the number in [0, 1) that every row draws.

    Rows below `aside` are set aside, others below `held` validate, the rest train.
    """

    aside: float
    held: float


@dataclass
class Survey:
    """The findings of the first pass. Everything but `values` is about the rows to train on."""

    aside: Reservoir
    held: Reservoir
    sample: Reservoir
    inputs: Moments
    targets: Moments | None  # of classes there are none
    values: NDArray[Any]  # the labels, or the least and the greatest targets
    sides: list[NDArray[np.uint8]] = field(default_factory=list)  # bits: whether a row trains
    counts: list[int] = field(default_factory=list)  # rows to train on in each row group
    draws: tuple[float, float] = (np.inf, -np.inf)  # the least and the greatest

    def trains(self, part: int, rows: int) -> Booleans:
        """Tell which rows of a row group are to train on."""
        return np.unpackbits(self.sides[part], count=rows).astype(bool)


def survey(
    table: ParquetTable,
    columns: Columns,
    bounds: Bounds,
    most: int,
    seed: int,
    progress: Progress,
) -> Survey:
    """Read everything once; `most` rows are kept of each kind, as many for each use."""
    width = len(columns.inputs), len(columns.targets)
    zeros = [Moments.none(n) for n in width]
    found = Survey(
        Reservoir(most),
        Reservoir(most),
        Reservoir(min(most, SAMPLE)),
        zeros[0],
        None if columns.classes else zeros[1],
        np.array([]) if columns.classes else np.outer([np.inf, -np.inf], np.ones(width[1])),
    )
    begin, shown, done = time.monotonic(), False, 0
    with closing(progress):
        for part, group in enumerate(table.groups):
            arrow = table.read(part, columns.all)
            sides = []
            for start in range(0, group.rows, CHUNK):
                piece = arrow.slice(start, CHUNK)
                sides.append(_note(piece, found, table, part, start, columns, bounds, seed))
            trained = np.concatenate(sides)
            found.sides.append(np.packbits(trained))
            found.counts.append(int(trained.sum()))
            done += group.rows
            if not shown and time.monotonic() - begin > PATIENCE:
                progress.start("reading", table.rows, done)
                shown = True
            if shown:
                progress.update(done, f"{table.path}")
    return found


def group_draws(table: ParquetTable, groups: str, seed: int) -> Floats | None:
    """Return the sorted draws of the groups, or None above 10,000: chance is fair to that many."""
    seen = np.array([])
    for part in range(len(table.groups)):
        values, _ = _labels(table.read(part, [groups]), groups, table, part, 0)
        seen = np.union1d(seen, _drawn_by(values, seed))
        if len(seen) > MANY_GROUPS:
            return None
    return seen


def _note(
    piece: ArrowTable,
    found: Survey,
    table: ParquetTable,
    part: int,
    start: int,
    columns: Columns,
    bounds: Bounds,
    seed: int,
) -> Booleans:
    """Take note of some rows of a row group; which of them are to train on."""
    X = np.column_stack([numbers(piece[name]) for name in columns.inputs])
    good = np.isfinite(X) | (np.isnan(X) & (columns.missing in ("auto", "mean")))
    _check(good, X, columns.inputs, table, part, start, "; missing='mean' fills it with the mean")
    y = _targets(piece, found, table, part, start, columns)
    if columns.groups is None:
        draws = _uniform(row_hashes(X), seed)
    else:
        values, codes = _labels(piece, columns.groups, table, part, start)
        draws = _drawn_by(values, seed)[codes]
    found.draws = (
        min(found.draws[0], float(draws.min())),
        max(found.draws[1], float(draws.max())),
    )
    keys = np.random.default_rng((seed, part, start)).random(len(X))
    aside = draws < bounds.aside
    trained = draws >= bounds.held
    found.aside.add(X[aside], y[aside], keys[aside])
    held = ~aside & ~trained
    found.held.add(X[held], y[held], keys[held])
    found.sample.add(X[trained], y[trained], keys[trained])
    found.inputs.add(Moments.of(X[trained]))
    if found.targets is not None:
        found.targets.add(Moments.of(y[trained]))
    return np.asarray(trained)


def _targets(
    piece: ArrowTable, found: Survey, table: ParquetTable, part: int, start: int, columns: Columns
) -> NDArray[Any]:
    """Return the targets of some rows, (rows, targets) or labels, and note their values."""
    if columns.classes:
        values, codes = _labels(piece, columns.targets[0], table, part, start)
        known = np.union1d(found.values, values) if len(found.values) else np.unique(values)
        found.values = known
        return values[codes]
    y = np.column_stack([numbers(piece[name]) for name in columns.targets]).astype(np.float64)
    _check(np.isfinite(y), y, columns.targets, table, part, start)
    found.values = np.array(
        [np.minimum(found.values[0], y.min(0)), np.maximum(found.values[1], y.max(0))]
    )
    return y


def _labels(
    piece: ArrowTable, name: str, table: ParquetTable, part: int, start: int
) -> tuple[NDArray[Any], Integers]:
    """Return labels or groups, or refuse a row that has none."""
    values, codes = labels(piece[name])
    nothing = codes < 0
    if values.dtype.kind == "f" and len(values):
        nothing |= np.isnan(values)[codes]
    if nothing.any():
        where = table.place(part, start + int(nothing.argmax()))
        raise InputError(f"{where}: column {name!r} holds no value")
    return values, codes


def _check(
    good: Booleans,
    values: NDArray[Any],
    names: list[str],
    table: ParquetTable,
    part: int,
    start: int,
    hint: str = "",
) -> None:
    """Refuse a value with its place; the hint is for one that is missing."""
    if good.all():
        return
    row, column = (int(place) for place in np.argwhere(~good)[0])
    missing = np.isnan(values[row, column])
    what = f"NaN or nothing{hint}" if missing else "infinity"
    raise InputError(f"{table.place(part, start + row)}: column {names[column]!r} holds {what}")


def _drawn_by(groups: NDArray[Any], seed: int) -> Floats:
    digests = [hashlib.blake2b(str(group).encode(), digest_size=8).digest() for group in groups]
    return _uniform(np.frombuffer(b"".join(digests), dtype="<u8"), seed)


def _uniform(hashes: NDArray[np.uint64], seed: int) -> Floats:
    """Return a number in [0, 1) for each hash, others for another seed (SplitMix64)."""
    z = hashes + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.ldexp(((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64), -53)


# --------------------------------------------------------------------------------------------------
# Splits of Parquet files: column roles, and rows kept in memory
# --------------------------------------------------------------------------------------------------

MOST_KEPT = 100_000  # rows of each kind
TINY = 1e-290  # a sum of squares that is still as exact as others
COPIES = 3  # of a kept row in float64: itself, and what is made of it to judge by


@dataclass(frozen=True)
class ParquetSplit:
    """A table in files after its first reading: rows that stay in memory, targets as in the files.

    Each pair is X and y; `values` are all labels of a class target, or the extremes of numbers.
    """

    table: ParquetTable
    columns: Columns
    found: Survey
    memory: int
    seed: int
    sample: Pair  # of the rows to train on
    held: Pair | None  # None where validation rows are given
    aside: Pair | None
    values: NDArray[Any]

    @property
    def missing(self) -> str:
        """How missing inputs are treated: "auto" fills them with the mean where there are any."""
        if self.columns.missing != "auto":
            return self.columns.missing
        kept = (pair[0] for pair in (self.held, self.aside) if pair is not None)
        lacking = (self.found.inputs.count < sum(self.found.counts)).any()
        return "mean" if lacking or any(gaps_of(X).any() for X in kept) else "refuse"


def split_parquet(
    table: ParquetTable,
    y: object,  # the name of the target column or a list of names, and
    groups: object,  # that of a column or None; anything else is refused
    *,
    classes: bool,
    missing: str,
    hold_out: bool,
    set_aside: bool,
    seed: int,
    memory: int,
    verbose: bool,
) -> ParquetSplit:
    """Read the table once: what training needs to know of it, and the rows that stay in memory."""
    check_whole("memory", memory, 1)
    if missing == "indicator":
        raise InputError(
            "missing = 'indicator' is for tables in memory; accepted for files: auto, mean, refuse"
        )
    columns = _columns(table, y, groups, classes, missing)
    if table.rows < FEWEST_ROWS:
        raise InputError(f"{table.path}: has {table.rows} rows; at least {FEWEST_ROWS} are needed")
    most = rows_to_keep(memory, len(columns.inputs) + len(columns.targets))
    found = _survey(table, columns, most, seed, hold_out, set_aside, verbose)
    if not found.inputs.count.all():
        empty = columns.inputs[int(found.inputs.count.argmin())]
        raise InputError(f"{table.path}: column {empty!r} has no value at all, so it has no mean")
    _check_moments(table, columns.inputs, found.inputs)
    single = isinstance(y, str)

    def rows_of(kept: Reservoir) -> Pair:
        X, targets = kept.rows()
        return X, _shaped(targets, single)

    return ParquetSplit(
        table,
        columns,
        found,
        memory,
        seed,
        sample=rows_of(found.sample),
        held=rows_of(found.held) if hold_out else None,
        aside=rows_of(found.aside) if len(found.aside) else None,
        values=_shaped(found.values, single),
    )


def rows_to_keep(memory: int, columns: int) -> int:
    """Return how many rows to keep of each of three kinds, which share a quarter of the budget."""
    return max(1, min(MOST_KEPT, memory // 4 // 3 // (8 * COPIES * columns)))


def _columns(
    table: ParquetTable,
    y: object,  # whatever a caller gave: refused here
    groups: object,
    classes: bool,
    missing: str,
) -> Columns:
    """Tell which columns are inputs, targets and groups, or refuse where they cannot be."""
    targets = [y] if isinstance(y, str) else list(y) if isinstance(y, list | tuple) else []
    if not targets or not all(isinstance(name, str) for name in targets):
        raise InputError(
            f"X is {str(table.path)!r}, so y must name the target column, or be a list of "
            f"names; it is a {type(y).__name__}"
        )
    if not (groups is None or isinstance(groups, str)):
        raise InputError(f"groups must name a column of the files; it is a {type(groups).__name__}")
    for argument, names in (("y", targets), ("groups", [] if groups is None else [groups])):
        for name in names:
            if name not in table.columns:
                known = ", ".join(table.columns)
                raise InputError(
                    f"{argument}: there is no column {name!r} in {table.path}"
                    f"{nearest(name, table.columns)}; {known}"
                )
    named = [*targets, *([] if groups is None else [groups])]
    if (name := first_repeated(named)) is not None:
        raise InputError(f"column {name!r} is named twice in y and groups")
    if classes and len(targets) > 1:
        raise InputError(f"a classifier has one target; y names {len(targets)}")
    left = set(named)
    inputs = [name for name in table.columns if name not in left]
    if not inputs:
        raise InputError(f"{table.path}: no column is left as an input")
    if groups is not None:
        refuse_kind(f"groups, column {groups!r},", table.columns[groups], GROUPS)
    for name in targets if classes else ():
        refuse_kind(f"y, column {name!r},", table.columns[name], LABELS)
    for name in inputs if classes else [*inputs, *targets]:
        if table.columns[name] not in (NUMBER, "yes/no"):
            raise InputError(
                f"{table.files[0]}: column {name!r} holds {table.columns[name]}; numbers are "
                "needed, so leave it out of the files or name it in ParquetTable(ignore=...)"
            )
    return Columns(inputs, targets, groups, classes, missing)


def _check_moments(table: ParquetTable, names: list[str], found: Moments) -> None:
    """Refuse inputs whose variance is no number: its square would be 0 or infinite."""
    varies = found.high > found.low
    lost = varies & ~((found.squares > TINY) & np.isfinite(found.squares))
    if lost.any():
        k = int(lost.argmax())
        raise InputError(
            f"{table.path}: column {names[k]!r} goes from {found.low[k]:g} to {found.high[k]:g}, "
            "and its variance is no number; multiply it by a constant"
        )


def _survey(
    table: ParquetTable,
    columns: Columns,
    most: int,
    seed: int,
    hold: bool,
    set_aside: bool,
    verbose: bool,
) -> Survey:
    """Read the table once, and again where chance left a side without rows."""
    share = most / table.rows
    aside = min(SET_ASIDE, share) if set_aside else 0.0
    held = min(validation_fraction(table.rows), share) if hold else 0.0
    bounds = Bounds(aside, aside + held)
    if columns.groups is not None:
        bounds = _whole_groups(bounds, group_draws(table, columns.groups, seed), table)
    found = survey(table, columns, bounds, most, seed, progress_for(verbose))
    low, high = found.draws
    if hold and not aside and low < high and not (len(found.held) and len(found.sample)):
        bounds = Bounds(0.0, float(np.nextafter(low, 1)))
        found = survey(table, columns, bounds, most, seed, progress_for(verbose))
    for rows, needed in ((found.aside, aside), (found.held, held), (found.sample, True)):
        if needed and not len(rows):
            raise InputError(f"{table.path}: has too few different inputs to split")
    return found


def _whole_groups(bounds: Bounds, draws: Floats | None, table: ParquetTable) -> Bounds:
    """Put the bounds between groups, so that a few groups are shared out as exactly as many."""
    if draws is None:
        return bounds
    aside = max(1, round(bounds.aside * len(draws))) if bounds.aside else 0
    held = aside + max(1, round((bounds.held - bounds.aside) * len(draws)))
    if held >= len(draws):
        raise InputError(f"{table.path}: has {len(draws)} groups, which are too few to split")
    return Bounds(float(draws[aside]) if aside else 0.0, float(draws[held]))


def _shaped(y: NDArray[Any], single: bool) -> NDArray[Any]:
    """Return (rows,) where one target was named alone."""
    return y[:, 0] if single and y.ndim == 2 else y


# --------------------------------------------------------------------------------------------------
# Shares of the rows for each of several workers
#
# A worker takes whole row groups where they can be dealt out so that the largest and the smallest
# share differ by a twentieth of the mean at most: then each row is read once by one worker. Where
# row groups are too few or too unequal for that, a worker reads every one and takes each W-th row
# of all those to train on.
# --------------------------------------------------------------------------------------------------

UNEVEN = 0.05  # of the mean share

Bits = NDArray[np.uint8]


@dataclass(frozen=True)
class Shares:
    """The row groups of each worker, or all of them where rows are dealt out one by one."""

    parts: tuple[tuple[int, ...], ...]
    by_rows: bool

    @classmethod
    def of(cls, counts: Sequence[int], workers: int) -> Shares:
        """Deal row groups out, the largest first, each to the worker with the fewest rows."""
        own: list[list[int]] = [[] for _ in range(workers)]
        rows = [0] * workers
        for part in sorted(range(len(counts)), key=lambda part: -counts[part]):
            worker = min(range(workers), key=lambda w: (rows[w], w))
            own[worker].append(part)
            rows[worker] += counts[part]
        if max(rows) - min(rows) <= UNEVEN * sum(rows) / workers:
            return cls(tuple(tuple(sorted(parts)) for parts in own), by_rows=False)
        return cls((tuple(range(len(counts))),) * workers, by_rows=True)

    def rows(self, counts: Sequence[int]) -> list[int]:
        """Return the rows that each worker trains on."""
        workers = len(self.parts)
        if self.by_rows:
            return [len(range(worker, sum(counts), workers)) for worker in range(workers)]
        return [sum(counts[part] for part in parts) for parts in self.parts]

    def split(self, whole: ParquetSplit, worker: int) -> ParquetSplit:
        """Return the table as a worker sees it."""
        parts, workers, found = self.parts[worker], len(self.parts), whole.found
        table = copy.copy(whole.table)
        table.groups = [whole.table.groups[part] for part in parts]
        sides = [found.sides[part] for part in parts]
        if self.by_rows:
            before = np.cumsum([0, *found.counts])
            firsts = [int(worker - start) % workers for start in before[:-1]]
            sides = [
                _thinned(side, group.rows, first, workers)
                for side, group, first in zip(sides, table.groups, firsts, strict=True)
            ]
            counts = [
                len(range(first, count, workers))
                for first, count in zip(firsts, found.counts, strict=True)
            ]
        else:
            counts = [found.counts[part] for part in parts]
        return replace(whole, table=table, found=replace(found, sides=sides, counts=counts))


def to_send(split: ParquetSplit) -> ParquetSplit:
    """Return what others need to read the rows to train on: no rows, and where the files are."""
    table = copy.copy(split.table)
    table.files = [f.absolute() if isinstance(f, Path) else f for f in table.files]
    nothing = Reservoir(0)
    found = replace(split.found, aside=nothing, held=nothing, sample=nothing)
    empty = np.empty((0, len(split.columns.inputs))), np.empty(0)
    return replace(split, table=table, found=found, sample=empty, held=None, aside=None)


def _thinned(side: Bits, rows: int, first: int, workers: int) -> Bits:
    """Leave each W-th of the rows to train on, from one of them on."""
    trains = np.unpackbits(side, count=rows)
    chosen = np.flatnonzero(trains)[first::workers]
    own = np.zeros_like(trains)
    own[chosen] = 1
    return np.packbits(own)
