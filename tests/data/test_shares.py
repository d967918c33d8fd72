"""Shares of a table in files: every row to train on belongs to one worker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rdeepsense.data.parquet import ParquetTable
from rdeepsense.data.stream import UNEVEN, ParquetSplit, Shares, split_parquet, to_send


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 9))
@example([0], 9)  # no rows at all
@example([1000], 9)
@example([20, 21], 2)  # as uneven as is allowed
def test_every_row_group_is_dealt_out_once_or_each_is_shared(counts: list[int], w: int) -> None:
    shares = Shares.of(counts, w)
    rows = shares.rows(counts)
    assert len(rows) == w
    assert sum(rows) == sum(counts)
    if shares.by_rows:
        assert all(parts == tuple(range(len(counts))) for parts in shares.parts)
        assert max(rows) - min(rows) <= 1
    else:
        assert sorted(p for parts in shares.parts for p in parts) == list(range(len(counts)))
        assert max(rows) - min(rows) <= UNEVEN * sum(counts) / w


def test_one_worker_has_the_row_groups_in_their_order() -> None:
    assert Shares.of([5, 9, 1, 7], 1) == Shares(((0, 1, 2, 3),), by_rows=False)


def test_row_groups_are_dealt_out_where_they_balance() -> None:
    assert Shares.of([4, 3, 1, 2], 2) == Shares(((0, 2), (1, 3)), by_rows=False)
    assert Shares.of([100, 90], 2).by_rows


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> ParquetSplit:
    folder = tmp_path_factory.mktemp("table")
    x = np.random.default_rng(0).normal(size=1_200)
    pq.write_table(pa.table({"x": x, "y": x}), folder / "a.parquet", row_group_size=100)
    return split_parquet(
        ParquetTable(folder),
        "y",
        None,
        classes=False,
        missing="auto",
        hold_out=True,
        set_aside=False,
        seed=0,
        memory=2**30,
        verbose=False,
    )


def read(split: ParquetSplit) -> list[float]:
    found: list[float] = []
    for part, group in enumerate(split.table.groups):
        values = split.table.read(part, ["x"])["x"].to_numpy()
        own = values[split.found.trains(part, group.rows)]
        assert len(own) == split.found.counts[part]
        found += own.tolist()
    return found


@pytest.mark.parametrize(("workers", "by_rows"), [(1, False), (3, False), (5, True), (7, True)])
def test_shares_are_all_rows_to_train_on(split: ParquetSplit, workers: int, by_rows: bool) -> None:
    counts = split.found.counts
    shares = Shares.of(counts, workers)
    assert shares.by_rows is by_rows
    own = [read(shares.split(to_send(split), worker)) for worker in range(workers)]
    assert [len(rows) for rows in own] == shares.rows(counts)
    assert sorted(value for rows in own for value in rows) == sorted(read(split))
    if workers == 1:
        assert own[0] == read(split)


def test_what_is_sent_holds_no_rows(split: ParquetSplit, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = to_send(split)
    assert len(sent.found.sample) == len(sent.found.held) == len(sent.sample[0]) == 0
    monkeypatch.chdir(split.table.path.parent)
    relative = ParquetTable(Path(split.table.path.name))
    assert not relative.files[0].is_absolute()
    relative_split = type(split)(**{**vars(split), "table": relative})
    assert to_send(relative_split).table.files == split.table.files
    assert not relative.files[0].is_absolute()
