"""The recordings of a log: rows with the same values of some columns, wherever they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans
from rdeepsense.errors import InputError
from rdeepsense.windowing.columns import ABSENT, Table, coded
from rdeepsense.windowing.timeline import Rows


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
