"""Files of anybody: read, or refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from rdeepsense.cli.reading.table import read_table


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
