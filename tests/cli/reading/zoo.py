"""What awkward tables are made of: each is a few rows that make a point.

`Animal.build` gives the bytes. A table that is read (`readable.py`) ends with exit code 0 and the
inputs named there; one that is refused (`refused.py`) with exit code 1 and one line. `said` are
words of either.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

ROWS = 40


@dataclass(frozen=True)
class Animal:
    name: str
    build: Callable[[], bytes]
    inputs: tuple[str, ...] = ()  # empty: refused
    said: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    file: str = "t.csv"
    needs: str = "polars"


def columns() -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, ROWS)).round(3)
    return {"a": a.tolist(), "b": b.tolist(), "y": (a - b).round(3).tolist()}


def csv(
    change: Callable[[dict[str, list[Any]]], None] = lambda c: None,
    separator: str = ",",
    comma: bool = False,
    end: str = "\n",
    header: bool = True,
) -> str:
    table = columns()
    change(table)

    def cell(value: Any) -> str:
        text = str(value)
        return text.replace(".", ",") if comma and isinstance(value, float) else text

    rows = [separator.join(map(cell, row)) for row in zip(*table.values(), strict=True)]
    return end.join([separator.join(table)] * header + rows) + end


def text(**options: Any) -> Callable[[], bytes]:
    return lambda: csv(**options).encode()


def put(column: str, **cells: Any) -> Callable[[dict[str, list[Any]]], None]:
    """Write cells, given as r3="x", into a column."""

    def change(table: dict[str, list[Any]]) -> None:
        for row, value in cells.items():
            table[column][int(row[1:])] = value

    return change


def add(name: str, values: Callable[[int], Any], first: bool = False) -> Any:
    def change(table: dict[str, list[Any]]) -> None:
        own = {name: [values(k) for k in range(ROWS)]}
        whole = {**own, **table} if first else {**table, **own}
        table.clear()
        table.update(whole)

    return change


def frame() -> pl.DataFrame:
    return pl.DataFrame(columns())


def written(write: Callable[[pl.DataFrame, io.BytesIO], Any]) -> Callable[[], bytes]:
    def build() -> bytes:
        buffer = io.BytesIO()
        write(frame(), buffer)
        return buffer.getvalue()

    return build


def zipped(*names: str) -> Callable[[], bytes]:
    def build() -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in names:
                archive.writestr(name, csv())
        return buffer.getvalue()

    return build


def zstd() -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(csv().encode())
    return bytes(sink.getvalue())


def excel(second: bool = False, odd: bool = False) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "log"
    table = columns()
    if odd:
        table["a"][3] = "n/a"
        table["b"][4] = "broken"
    sheet.append(list(table))
    for row in zip(*table.values(), strict=True):
        sheet.append(row)
    if second:
        book.create_sheet("notes")
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def lines(change: Callable[[int, dict[str, Any]], Any] = lambda k, row: None) -> bytes:
    found = []
    for k, row in enumerate(frame().iter_rows(named=True)):
        change(k, row)
        found.append(json.dumps(row))
    return "\n".join(found).encode()


def when(k: int) -> dt.datetime:
    return dt.datetime(2024, 5, 1) + dt.timedelta(hours=7 * k)
