"""The target columns: text that is numbers is read as such, and stray text is never a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.numbers import numbers_in
from rdeepsense.cli.reading.table import Table
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MOST_CLASSES = 50


def read_targets(table: Table, names: Sequence[str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the table with numeric targets as numbers, and how texts among them were read.

    Numbers with a few cells of text among them are refused.
    """
    import polars as pl

    frame = table.frame
    texts = [name for name in names if frame[name].dtype == pl.String]
    if not texts:
        return frame, {}
    found = numbers_in(frame.select(texts), table.comma_separated)
    for name, strays in found.strays.items():
        raise InputError(
            f"--target {name!r} holds numbers, and text in {strays} (the first row is 0); mend or "
            "remove these rows"
        )
    if found.columns:
        frame = frame.with_columns(found.columns.values())
    return frame, found.read_as


def with_truth(table: Table, names: Sequence[str], texts: bool = False) -> Table:
    """Leave out the rows that lack a target, and say so; `texts` are classes as they are written.

    Rows are counted without them afterwards.
    """
    import polars as pl

    frame = table.frame if texts else read_targets(table, names)[0]
    present = [
        pl.col(name).fill_nan(None).is_not_null()
        if frame[name].dtype.is_float()
        else pl.col(name).is_not_null()
        for name in names
    ]
    kept = frame.select(pl.all_horizontal(present).alias("kept")).to_series()
    rows = int((~kept).sum())
    if not rows:
        return table
    named = " or ".join(repr(name) for name in names)
    if rows == frame.height:
        raise InputError(f"--target: no row has a value of {named}")
    said = f"{rows:,} of {frame.height:,} rows lack a value of {named} and are left out"
    return replace(table, frame=table.frame.filter(kept), said=[*table.said, said])


def check_classes(name: str, classes: int, rows: int, many: bool) -> None:
    """Refuse so many classes that the column was hardly meant to be one."""
    if many or (classes <= MOST_CLASSES and 2 * classes <= rows):
        return
    raise InputError(
        f"--target {name!r} would have {classes:,} classes in {rows:,} rows; if it holds numbers, "
        "mend the cells that are none, or give --task regression; --many-classes takes them all"
    )
