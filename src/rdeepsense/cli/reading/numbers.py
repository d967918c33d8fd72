"""Numbers in columns of text: with decimal commas, thousands, and some cells that are no number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.marks import without_marks

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

MOST_STRAY = 0.05  # of the cells that are not empty
NAMED = 3  # stray cells that are named with row and value
POINT, COMMA, THOUSANDS = "decimal points", "decimal commas", "commas between thousands"
SPACES = "[\u00a0\u202f']"  # between thousands, in France and in Switzerland
WITH_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][+-]?\d+)?$"
WITH_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"


@dataclass(frozen=True)
class Strays:
    """The cells of a column of numbers that are none."""

    cells: int
    filled: int  # cells that are not empty
    first: tuple[tuple[int, str], ...]  # row and value

    def __str__(self) -> str:
        named = ", ".join(f"row {row} {value!r:.40}" for row, value in self.first)
        more = f" and {self.cells - len(self.first):,} more" if self.cells > len(self.first) else ""
        return f"{self.cells:,} of {self.filled:,} cells: {named}{more}"


@dataclass(frozen=True)
class NumbersInText:
    """The columns of text that are numbers, how each was read, its stray cells; the others."""

    columns: dict[str, pl.Series]
    read_as: dict[str, str]
    strays: dict[str, Strays]
    texts: dict[str, str]  # of each other column a cell that is no number
    mixed: dict[str, Strays]  # those of the others that are numbers for the most part


def numbers_in(
    texts: pl.DataFrame, comma_separated: bool, most: float = MOST_STRAY
) -> NumbersInText:
    """Find the columns in which at most a share `most` of the filled cells is no number.

    Each column is read with decimal points, decimal commas (1.234,5) and commas between thousands
    (1,234.5); the reading that leaves the fewest strays counts. Where 1,234 could be both, it is
    1234 in a table whose columns commas separate, and 1.234 in others.
    """
    names, rows = texts.columns, texts.height
    # One long column: a query costs as much as the table has columns.
    clean = _clean(texts)
    filled = clean.is_not_null().to_numpy().reshape(-1, rows)
    best = [_Read(POINT, *_cast(clean, POINT, rows, range(len(names))))] * len(names)
    places = list(range(len(names)))
    for way in (THOUSANDS, COMMA) if comma_separated else (COMMA, THOUSANDS):
        left = [k for k in places if best[k].found(k) < filled[k].sum()]
        if not left:
            break
        other = _Read(way, *_cast(clean, way, rows, left))
        for k in left:
            best[k] = other if other.found(k) > best[k].found(k) else best[k]
    columns, read_as, strays, others, mixed = {}, {}, {}, {}, {}
    for k, (name, read) in enumerate(zip(names, best, strict=True)):
        bad = (filled[k] & ~read.numeric[read.place[k]]).nonzero()[0]
        total = int(filled[k].sum())
        first = tuple((int(row), str(clean[k * rows + int(row)])) for row in bad[:NAMED])
        if len(bad) == total or len(bad) > most * total:
            others[name] = first[0][1] if total else ""
            if 2 * len(bad) < total:
                mixed[name] = Strays(len(bad), total, first)
            continue
        columns[name], read_as[name] = read.column(k, rows).alias(name), read.way
        if len(bad):
            strays[name] = Strays(len(bad), total, first)
    return NumbersInText(columns, read_as, strays, others, mixed)


@dataclass(frozen=True)
class _Read:
    """Some columns, one after the other, read in one way."""

    way: str
    values: pl.Series
    numeric: NDArray[np.bool_]  # (columns, rows)
    place: dict[int, int]  # of a column among them

    def found(self, column: int) -> int:
        return int(self.numeric[self.place[column]].sum())

    def column(self, column: int, rows: int) -> pl.Series:
        return self.values.slice(self.place[column] * rows, rows)


def _clean(texts: pl.DataFrame) -> pl.Series:
    """Return all cells, column after column, with nothing where there is no value."""
    import polars as pl

    cells = pl.concat([series.alias("") for series in texts.iter_columns()], rechunk=True)
    own = pl.col("")
    return (
        without_marks(cells.to_frame())
        .select(own.str.replace("^\u2212", "-").str.replace_all(SPACES, ""))
        .to_series()
    )


def _cast(
    clean: pl.Series, way: str, rows: int, columns: Sequence[int]
) -> tuple[pl.Series, NDArray[np.bool_], dict[int, int]]:
    """Read some columns; a cell that is no number in this way of reading becomes nothing."""
    import polars as pl

    cells = pl.concat([clean.slice(k * rows, rows) for k in columns], rechunk=True)
    own = pl.col("")
    if way == COMMA:
        plain = own.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        reading = pl.when(own.str.contains(WITH_COMMA)).then(plain).otherwise(None)
    elif way == THOUSANDS:
        plain = own.str.replace_all(",", "", literal=True)
        reading = pl.when(own.str.contains(WITH_THOUSANDS)).then(plain).otherwise(own)
    else:
        reading = own
    values = cells.to_frame().select(reading.cast(pl.Float64, strict=False).alias("")).to_series()
    numeric = values.is_not_null().to_numpy().reshape(-1, rows)
    return values, numeric, {k: place for place, k in enumerate(columns)}


def read_with(read_as: Mapping[str, str]) -> list[str]:
    """Say which columns had another sign than a decimal point, where any had."""
    said = []
    for way in dict.fromkeys(read_as.values()):
        if way != POINT:
            names = [name for name, own in read_as.items() if own == way]
            example = "'1,5' is 1.5" if way == COMMA else "'1,234' is 1234"
            some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            said.append(f"{way} ({example}) in {some}")
    return said
