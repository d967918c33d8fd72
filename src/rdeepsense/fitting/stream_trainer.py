"""Training on Parquet files that are larger than memory, within a budget of bytes.

A quarter of the budget is for rows that are kept: those that validate, those set aside, and a
sample of those to train on. Five eighths hold the window that is trained on with its order, the
next one while it is read and put together, and the row group being read:

    window (3 row + 24) + group (2 readers raw + 3 row) <= 5/8 memory

with `row` and `raw` the bytes of a row as it is trained on and as the file gives it, `group` the
rows of the largest row group, and one reader for every four cores, at most four. An eighth is left
for what libraries hold back. Where all rows fit they are read once more and stay.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rdeepsense.arrays import Floats, Integers
from rdeepsense.data.parquet import ArrowTable, labels, numbers
from rdeepsense.data.rows import FitRows, Pair
from rdeepsense.data.scaling import TARGETS, Scaler
from rdeepsense.data.splits import Part, counted
from rdeepsense.data.stream import ParquetSplit
from rdeepsense.errors import InputError
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.fitting.target import Target
from rdeepsense.fitting.trainer import Trainer
from rdeepsense.heads import head_named
from rdeepsense.training import Rows, Schedule, StreamedRows, Windows

ORDER = 24  # bytes for the place of a row in the shuffled order, and to draw it
CHUNK = 16_384  # rows that are scaled at a time
MOST_READERS = 4


def reader_count() -> int:
    """Return the number of threads that read row groups: the training itself needs cores too."""
    return max(1, min(MOST_READERS, (os.cpu_count() or 1) // 4))


def window_rows(
    memory: int, total: int, batch: int, row: int, raw: int, group: int, readers: int
) -> int:
    """Return the rows of a window: whole batches, or all rows there are."""
    budget = 5 * memory // 8
    if total * (row + ORDER) + group * (2 * raw + row) <= budget:
        return total
    window, reading = 3 * row + ORDER, group * (2 * readers * raw + 3 * row)
    size = (budget - reading) // window // batch * batch
    if size < batch:
        least = -(-8 * (batch * window + reading) // 5)
        raise InputError(
            f"memory = {memory}: is too little for row groups of {group:,} rows and batches of "
            f"{batch:,}; give {least:,} bytes at least, or write files with smaller row groups"
        )
    return min(size, total)


@dataclass(frozen=True)
class ParquetRows(FitRows):
    """Rows that stay in their files; X and y are a sample of those to train on."""

    split: ParquetSplit

    @classmethod
    def of(cls, split: ParquetSplit, target: Target, validation: Pair | None) -> ParquetRows:
        """Encode the targets of the rows that stay in memory."""

        def encoded(pair: Pair) -> Pair:
            return pair[0], target.encode(pair[1], len(pair[0]))

        X, y = encoded(split.sample)
        weight = np.full(len(X), sum(split.found.counts) / len(X))
        sample = Part(np.arange(len(X)), weight, np.arange(len(X)))
        given = validation is not None
        if validation is None:
            assert split.held is not None
            validation = encoded(split.held)
        held = counted(*validation)
        aside = None if split.aside is None else encoded(split.aside)
        return cls(
            X=X,
            y=y,
            rows=sample,
            train=sample,
            X_val=validation[0],
            y_val=validation[1],
            validation=held,
            labels=None,
            split_off=not given,
            seed=split.seed,
            aside=aside,
            split=split,
        )


class StreamTrainer(Trainer):
    """A trainer on windows of the rows, one after the other."""

    can_fold = False
    can_travel = False

    def __init__(self, spec: FitSpec, rows: ParquetRows, target: Target) -> None:
        self._split = rows.split
        self._windows: Windows | None = None
        self._window: tuple[Tensor, Tensor] | None = None
        super().__init__(spec, rows, target)

    @property
    def row_count(self) -> int:
        return sum(self._split.found.counts)

    def close(self) -> None:
        if self._windows is not None:
            self._windows.close()
            self._windows = None

    def target_scaler(self, part: Part, likelihood: str) -> Scaler | None:
        """Take quantiles from the sample, mean and variance from all rows."""
        targets = self._split.found.targets
        if targets is None or head_named(likelihood).scaling != "standard":
            return super().target_scaler(part, likelihood)
        return targets.scaler(TARGETS)

    def training_rows(self, part: Part, scaler: Scaler | None) -> Rows:
        self.close()
        split, total = self._split, sum(self._split.found.counts)
        size = self._window_rows(total, self._batch(total), scaler)
        reader = Reader(split, self.input_scaler, scaler, self.target)
        if self._window is None:  # one place for all heads
            self._window = place_for(split, scaler, size, size == total, self.spec.device)
        rows = opened(split, reader, self._window, size == total, self.spec.device)
        self._windows = rows.windows if isinstance(rows, StreamedRows) else None
        return rows

    def _window_rows(self, total: int, batch: int, scaler: Scaler | None) -> int:
        """Return the rows of a window of so many in all, within the budget."""
        table, columns = self._split.table, self._split.columns
        return window_rows(
            self._split.memory,
            total,
            batch,
            row=4 * len(columns.inputs) + (8 if scaler is None else 4 * len(columns.targets)),
            raw=sum(table.bytes[name] for name in columns.all),
            group=max(group.rows for group in table.groups),
            readers=reader_count(),
        )

    def _input_scaler(self, part: Part) -> Scaler:
        return self._split.found.inputs.scaler()

    def _batch(self, total: int) -> int:
        batch = self.spec.batch_size
        return min(total, batch or Schedule.of(total, 0, 1.0, 0).batch_size)


def place_for(
    split: ParquetSplit, scaler: Scaler | None, size: int, all_of_them: bool, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return memory for so many rows; where they are all there are, it is the CPU's."""
    columns = split.columns
    targets = [len(columns.targets)] if scaler is not None else []
    kind = torch.int64 if scaler is None else torch.float32
    where = torch.device("cpu") if all_of_them else device
    return (
        torch.zeros(size, len(columns.inputs), device=where),
        torch.zeros(size, *targets, dtype=kind, device=where),
    )


def opened(
    split: ParquetSplit,
    reader: Reader,
    place: tuple[Tensor, Tensor],
    all_of_them: bool,
    device: torch.device,
) -> Rows:
    """Return the rows to train on: all of them, read now, or windows of them."""
    x, y = place
    counts = split.found.counts
    if all_of_them:
        at = 0
        for number, count in enumerate(counts):
            x[at : at + count], y[at : at + count] = reader(number)
            at += count
        return Rows(x.to(device), y.to(device))
    windows = Windows(
        counts,
        reader,
        len(x),
        seed=split.seed,
        readers=reader_count(),
        pinned=device.type == "cuda",
    )
    said = f"{split.table.description()}\n{split.columns} {len(x)}"
    return StreamedRows(x, y, windows=windows, description=said)


class Reader:
    """A reader of the rows of a row group that are to train on, scaled."""

    def __init__(
        self, split: ParquetSplit, inputs: Scaler, targets: Scaler | None, target: Target
    ) -> None:
        self._split, self._inputs, self._targets = split, inputs, targets
        self._target = target

    def __call__(self, part: int) -> tuple[Tensor, Tensor]:
        split, columns = self._split, self._split.columns
        group, count = split.table.groups[part], split.found.counts[part]
        arrow = split.table.read(part, [*columns.inputs, *columns.targets])
        trains = split.found.trains(part, group.rows)
        x = np.empty((count, len(columns.inputs)), dtype=np.float32)
        y = self._targets_of(count)
        at = 0
        for start in range(0, group.rows, CHUNK):
            chosen = np.flatnonzero(trains[start : start + CHUNK])
            piece, into = arrow.slice(start, CHUNK), slice(at, at + len(chosen))
            x[into] = _scaled(piece, columns.inputs, chosen, self._inputs)
            if self._targets is None:
                values, codes = labels(piece[columns.targets[0]])
                y[into] = self._target.encode(values, len(values))[codes[chosen]]
            else:
                y[into] = _scaled(piece, columns.targets, chosen, self._targets)
            at += len(chosen)
        return torch.from_numpy(x), torch.from_numpy(y)

    def _targets_of(self, count: int) -> NDArray[Any]:
        if self._targets is None:
            return np.empty(count, dtype=np.int64)
        return np.empty((count, len(self._targets.shift)), dtype=np.float32)


def _scaled(piece: ArrowTable, names: Sequence[str], chosen: Integers, scaler: Scaler) -> Floats:
    """Scale as `Scaler.gather` does, column by column, as they lie in the file."""
    values = np.array([numbers(piece[name])[chosen] for name in names])
    values = (values - scaler.shift[:, None]) / scaler.scale[:, None]
    if np.isnan(values.sum()):
        values[np.isnan(values)] = 0.0
    return values.T
