"""Dividing a table in files among workers that train on it together.

A worker takes whole row groups where they can be dealt out so that the largest and the smallest
share differ by a twentieth of the mean at most: then each row is read once by one worker. Where row
groups are too few or too unequal for that, a worker reads every one and takes each W-th row of all
those to train on.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rdeepsense.data.accumulators import Reservoir
from rdeepsense.data.stream import ParquetSplit

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
