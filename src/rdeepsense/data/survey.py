"""The first pass over a table larger than memory: facts that training needs to begin.

Which side a row is on is decided by a hash of its inputs, or of its group, so equal inputs are
never on both sides and no list of them is needed; a bit for each row remembers it.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.data.accumulators import Moments, Reservoir
from rdeepsense.data.parquet import ArrowTable, ParquetTable, labels, numbers
from rdeepsense.data.splits import row_hashes
from rdeepsense.errors import InputError
from rdeepsense.progress import Progress

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
