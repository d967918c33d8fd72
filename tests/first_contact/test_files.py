"""Files of anybody: read, or refused with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from cli.conftest import run as command
from first_contact.test_live import model, rows

from rdeepsense.cli.reading.table import read_table

__all__ = ["command", "model"]


def write_arrow(path: Path, table: Any) -> Path:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


NESTED = {
    "text": lambda views: views,
    "list": lambda views: pa.ListArray.from_arrays(np.arange(len(views) + 1, dtype="i4"), views),
    "struct": lambda views: pa.StructArray.from_arrays([views], ["inner"]),
    "dictionary": lambda views: pa.DictionaryArray.from_arrays(np.arange(len(views)), views),
}


@pytest.mark.parametrize("kind", NESTED)
def test_a_damaged_view_of_a_missing_text_is_not_followed(kind: str, tmp_path: Path) -> None:
    """The view of a missing value is not checked by pyarrow and was followed by polars."""
    valid = np.array([1, 1, 0] * 10, bool)
    views = np.zeros((30, 4), "<i4")
    views[:] = [1, ord("x"), 0, 0]
    views[~valid] = [2**30 - 1, -5, 2**30, 2**30]
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    text = pa.Array.from_buffers(pa.string_view(), 30, [bits, pa.py_buffer(views)])
    table = pa.table({"a": np.arange(30.0), "text": NESTED[kind](text)})
    frame = read_table(write_arrow(tmp_path / "t.arrow", table)).frame
    assert frame["a"].to_list() == list(range(30))
    column = frame["text"]
    if kind == "list":
        column = column.explode()
    elif kind == "struct":
        column = column.struct.field("inner")
    assert column.cast(pl.String).to_list() == ["x", "x", None] * 10


def write_uncompressed(path: Path, frame: pl.DataFrame) -> None:
    frame.write_parquet(path, compression="uncompressed", statistics=False, row_group_size=50)


def test_a_shard_knows_its_source_by_content(
    command: Callable[..., Any], model: Any, tmp_path: Path
) -> None:
    X, _ = rows(100)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "x.parquet"
    write_uncompressed(path, frame)
    model.save(tmp_path / "m.st")
    assert command("predict", "m.st", "in", "-o", "out").code == 0
    before, kept = path.stat(), (tmp_path / "out" / "x.parquet").read_bytes()
    os.utime(path, ns=(1, 1))  # the same content at another time is the same
    again = command("predict", "m.st", "in", "-o", "out")
    assert "1 of them there already" in again.out
    assert (tmp_path / "out" / "x.parquet").read_bytes() == kept
    write_uncompressed(path, frame.with_columns(a=pl.col("a").reverse()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    stale = command("predict", "m.st", "in", "-o", "out")
    assert stale.code == 1
    assert "of another model, other rows or options" in stale.err
    assert command("predict", "m.st", "in", "-o", "out", "--overwrite").code == 0
    assert (tmp_path / "out" / "x.parquet").read_bytes() != kept


def test_an_empty_folder_is_named(command: Callable[..., Any], model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "m.st")
    (tmp_path / "none").mkdir()
    done = command("predict", "m.st", "none", "-o", "out")
    assert done.code == 1
    assert "none: is a folder, not a table; no *.parquet is in it" in done.err
