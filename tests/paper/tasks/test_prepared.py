"""Prepared files: the same task comes back, and what is none is named."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import task as prepared
from rdeepsense.paper.tasks.task import Task


def task(y: Any, **changes: Any) -> Task:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(y), 3)).astype(np.float32)
    X[0, 0], X[1, 1] = np.nan, -0.0
    targets = tuple(f"t{i}" for i in range(y.shape[1] if y.ndim == 2 else 1))
    return Task("NYCommute", X, y, ("a", "b [°]", "t0"), targets, "min", "here", False, **changes)


@pytest.mark.parametrize(
    "given",
    [
        task(np.arange(7, dtype=np.float32) / 3, groups=np.arange(7) - 3, grouped_by="day"),
        task(np.arange(14, dtype=np.float64).reshape(7, 2) / 3, split_by="groups"),
        task(np.arange(7, dtype=np.float32)[:, None]),
        task(np.array([0, 1, 2, 2, 1, 0, 0], dtype=np.int64), classes=("sit", "stand", "walk")),
    ],
    ids=["one target", "two targets", "a column", "classes"],
)
def test_round_trip(tmp_path: Path, given: Task) -> None:
    # several row groups, the last one short
    prepared.write(given, tmp_path / "task.parquet", row_group=3)
    found = prepared.read(tmp_path / "task.parquet")
    for field in fields(Task):
        before, after = getattr(given, field.name), getattr(found, field.name)
        if isinstance(before, np.ndarray):
            assert (before.dtype, before.shape) == (after.dtype, after.shape)
            assert before.tobytes() == after.tobytes()
        else:
            assert before == after
    assert [path.name for path in tmp_path.iterdir()] == ["task.parquet"]


def test_compact(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    zones = rng.normal(size=(260, 3)).astype(np.float32)
    given = replace(task(np.zeros(100_000, np.float32)), X=zones[rng.integers(0, 260, 100_000)])
    prepared.write(given, tmp_path / "task.parquet")
    assert (tmp_path / "task.parquet").stat().st_size < given.X.nbytes / 3


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "task.parquet"
    prepared.write(task(np.zeros(2, np.float32)), path)
    before = path.read_bytes()

    def fail(table: pa.Table, file: Any, **_: Any) -> None:
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        prepared.write(task(np.ones(2, np.float32)), path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["task.parquet"]


def test_what_cannot_be_stored(tmp_path: Path) -> None:
    good = task(np.zeros(2, np.float32))
    truth: Any = object()
    with pytest.raises(InputError, match="true distribution cannot be stored"):
        prepared.write(replace(good, truth=truth), tmp_path / "a")
    with pytest.raises(InputError, match="a name of its own"):
        prepared.write(replace(good, features=("a", "a", "b")), tmp_path / "a")
    with pytest.raises(InputError, match="a name of its own"):
        prepared.write(replace(good, targets=("a", "b")), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "task.parquet"
    with pytest.raises(InputError, match="task.parquet: there is no such file"):
        prepared.read(path)
    prepared.write(task(np.zeros(2, np.float32)), path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match="task.parquet: cannot be read as a prepared task"):
        prepared.read(path)
    pq.write_table(pa.table({"x": [1.0]}), path)
    with pytest.raises(InputError, match="task.parquet: is no prepared task of this version"):
        prepared.read(path)


def test_a_prepared_file_without_a_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "task.parquet"
    prepared.write(task(np.zeros(2, np.float32)), path)
    pq.write_table(pq.read_table(path).drop_columns(["x:a"]), path)
    with pytest.raises(InputError, match="task.parquet: cannot be read .*x:a"):
        prepared.read(path)
