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
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rdeepsense.data.parquet import labels, numbers
from rdeepsense.data.scaling import TARGETS, Scaler
from rdeepsense.data.splits import Part
from rdeepsense.data.stream import StreamedData
from rdeepsense.errors import InputError
from rdeepsense.fitting.trainer import Learner
from rdeepsense.training import Rows, Schedule, StreamedRows, Windows

ORDER = 24  # bytes for the place of a row in the shuffled order, and to draw it
CHUNK = 16_384  # rows that are scaled at a time
MOST_READERS = 4


def reader_count() -> int:
    """Threads that read row groups: the training itself needs cores too."""
    return max(1, min(MOST_READERS, (os.cpu_count() or 1) // 4))


def window_rows(
    memory: int, total: int, batch: int, row: int, raw: int, group: int, readers: int
) -> int:
    """Rows of a window: whole batches, or all rows there are."""
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


class StreamLearner(Learner):
    """Trains on windows of the rows, one after the other."""

    folds = False

    def __init__(self, estimator: Any, data: StreamedData, members: int, beta: float) -> None:
        self._data = data
        self._windows: Windows | None = None
        self._window: tuple[Tensor, Tensor] | None = None
        super().__init__(estimator, data, members, beta)

    def close(self) -> None:
        if self._windows is not None:
            self._windows.close()
            self._windows = None

    def target_scaler(self, part: Part, likelihood: str) -> Scaler | None:
        """Quantiles come from the sample, mean and variance from all rows."""
        targets = self._data.found.targets
        if targets is None or likelihood == "student":
            return super().target_scaler(part, likelihood)
        return targets.scaler(TARGETS)

    def training_rows(self, part: Part, scaler: Scaler | None) -> Rows:
        self.close()
        data, total = self._data, sum(self._data.found.counts)
        table, columns = data.table, data.columns
        targets = [len(columns.targets)] if scaler is not None else []
        reader = Reader(data, self.input_scaler, scaler, self.estimator)
        size = window_rows(
            data.memory,
            total,
            self._batch(total),
            4 * len(columns.inputs) + (8 if scaler is None else 4 * len(columns.targets)),
            sum(table.bytes[name] for name in columns.all),
            max(group.rows for group in table.groups),
            reader_count(),
        )
        if self._window is None:  # one place for all heads
            kind = torch.int64 if scaler is None else torch.float32
            where = torch.device("cpu") if size == total else self.device
            self._window = (
                torch.zeros(size, len(columns.inputs), device=where),
                torch.zeros(size, *targets, dtype=kind, device=where),
            )
        x, y = self._window
        if size == total:
            at = 0
            for number, count in enumerate(data.found.counts):
                x[at : at + count], y[at : at + count] = reader(number)
                at += count
            return Rows(x.to(self.device), y.to(self.device))
        pinned = self.device.type == "cuda"
        counts, seed = data.found.counts, data.seed
        self._windows = Windows(counts, reader, size, seed, reader_count(), pinned)
        said = f"{table.description()}\n{columns} {size}"
        return StreamedRows(x, y, windows=self._windows, description=said)

    def _input_scaler(self, part: Part) -> Scaler:
        return self._data.found.inputs.scaler()

    def _batch(self, total: int) -> int:
        batch: int | None = self.estimator.batch_size
        return min(total, batch or Schedule.of(total, 0, 1.0, 0).batch_size)


class Reader:
    """The rows to train on of a row group, scaled."""

    def __init__(
        self, data: StreamedData, inputs: Scaler, targets: Scaler | None, estimator: Any
    ) -> None:
        self._data, self._inputs, self._targets = data, inputs, targets
        self._estimator = estimator

    def __call__(self, part: int) -> tuple[Tensor, Tensor]:
        data, columns = self._data, self._data.columns
        group, count = data.table.groups[part], data.found.counts[part]
        arrow = data.table.read(part, [*columns.inputs, *columns.targets])
        trains = data.found.trains(part, group.rows)
        x = np.empty((count, len(columns.inputs)), dtype=np.float32)
        y = self._targets_of(count)
        at = 0
        for start in range(0, group.rows, CHUNK):
            chosen = np.flatnonzero(trains[start : start + CHUNK])
            piece, into = arrow.slice(start, CHUNK), slice(at, at + len(chosen))
            x[into] = _scaled(piece, columns.inputs, chosen, self._inputs)
            if self._targets is None:
                values, codes = labels(piece[columns.targets[0]])
                y[into] = self._estimator._encode_more(values, len(values))[codes[chosen]]
            else:
                y[into] = _scaled(piece, columns.targets, chosen, self._targets)
            at += len(chosen)
        return torch.from_numpy(x), torch.from_numpy(y)

    def _targets_of(self, count: int) -> NDArray[Any]:
        if self._targets is None:
            return np.empty(count, dtype=np.int64)
        return np.empty((count, len(self._targets.shift)), dtype=np.float32)


def _scaled(
    piece: Any, names: Sequence[str], chosen: NDArray[np.int64], scaler: Scaler
) -> NDArray[np.float64]:
    """As `Scaler.gather`, column by column, as they lie in the file."""
    values = np.array([numbers(piece[name])[chosen] for name in names])
    values = (values - scaler.shift[:, None]) / scaler.scale[:, None]
    if np.isnan(values.sum()):
        values[np.isnan(values)] = 0.0
    return values.T
