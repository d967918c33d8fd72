"""The cells that say that there is no value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MARKS = (
    *("", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "<NA>"),
    *("NaT", "?", "-", "--", "#N/A", "#NA", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "1.#QNAN"),
)


def without_marks(texts: pl.DataFrame) -> pl.DataFrame:
    """Return columns of text, without space around, with nothing where a mark was."""
    import polars as pl

    stripped = texts.select(pl.all().str.strip_chars())
    every = pl.all()
    return stripped.select(pl.when(every.is_in(MARKS)).then(None).otherwise(every).name.keep())


def without_sentinels(frame: pl.DataFrame, sentinels: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Return a table with nothing where a value of --missing-mark was, and how many there were.

    A number, such as -999, is found as a number: -999.0 is one too.
    """
    import polars as pl
    from polars import selectors

    if not sentinels:
        return frame, 0
    for mark in sentinels:
        if not mark.strip():
            raise InputError("--missing-mark '': an empty cell is missing already")
    before = sum(frame.null_count().row(0))
    numbers = [float(mark) for mark in sentinels if _is_number(mark)]
    numeric, text = selectors.numeric(), selectors.string()
    found = frame.with_columns(
        pl.when(numeric.cast(pl.Float64).is_in(numbers)).then(None).otherwise(numeric).name.keep(),
        pl.when(text.is_in(list(sentinels))).then(None).otherwise(text).name.keep(),
    )
    return found, sum(found.null_count().row(0)) - before


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
