"""Reading of tables and logs, and of their target columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.reading.columns import numbers_in
from rdeepsense.cli.reading.content import STDIN, read_content
from rdeepsense.cli.reading.formats import read_columnar, read_excel, read_json
from rdeepsense.cli.reading.text import read_delimited, without_sentinels
from rdeepsense.errors import InputError, nearest, require

if TYPE_CHECKING:
    import polars as pl


# --------------------------------------------------------------------------------------------------
# Reading of a table: CSV, Parquet, Arrow, Excel or JSON, told by its content
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table as it was read, and what was assumed on the way."""

    name: str
    frame: pl.DataFrame
    said: list[str] = field(default_factory=list)
    comma_separated: bool = True  # then a comma within a cell is hardly a decimal one


def read_table(path: Path, sentinels: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
    """Read a file, or stdin for "-"; what is no table is refused with the reason.

    `sentinels` are further marks of missing values, such as "-999"; columns named in `texts` stay
    as they are written.
    """
    content = read_content(path)
    name, data, separator = content.name, content.data, ","
    said = [content.packed] if content.packed else []
    if content.kind == "CSV":
        frame, more, separator = read_delimited(name, data, texts)
    elif content.kind == "JSON":
        frame, more = read_json(name, data)
    elif content.kind == "Excel":
        frame, more = read_excel(name, data)
    else:
        frame, more = read_columnar(name, data, content.kind), []
    if frame.width == 0 or frame.height == 0:
        raise InputError(f"{name}: has a header but no rows")
    _check_names(name, frame.columns)
    frame, marked = without_sentinels(frame, sentinels)
    if sentinels:
        more = [*more, f"{marked:,} cells with {' or '.join(sentinels)} are missing"]
    return Table(name, frame, said + more, separator == ",")


def _check_names(table: str, columns: Sequence[str]) -> None:
    """Refuse names that polars takes for patterns, and so for other columns."""
    for name in columns:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise InputError(f"{table}: the column name {name!r} is a pattern; rename the column")


# --------------------------------------------------------------------------------------------------
# The target columns: text that is numbers is read as such, and stray text is never a class
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# The columns of a sensor log that are needed, as arrays: of Parquet by pyarrow alone
# --------------------------------------------------------------------------------------------------

PARQUET = b"PAR1"


@dataclass(frozen=True)
class Log:
    """A log's columns by name, of pyarrow or polars, and what was assumed on the way."""

    name: str
    columns: dict[str, Any]  # Any: columns of pyarrow or polars
    names: Sequence[str]  # of all columns that the file has
    said: Sequence[str] = field(default_factory=list)


def read_log(
    path: Path, needed: Iterable[str], optional: Iterable[str] = (), sentinels: Sequence[str] = ()
) -> Log:
    """Read some columns of a log: those needed, and of the optional ones those that it has."""
    wanted, more = list(dict.fromkeys(needed)), list(optional)
    if path != STDIN and path.is_file() and not sentinels:
        with path.open("rb") as file:
            if file.read(4) == PARQUET:
                return _of_parquet(path, wanted, more)
    pass  # SELFIMPORT

    read = read_table(path, sentinels)
    names = list(read.frame.columns)
    chosen = _chosen(read.name, names, wanted, more)
    columns = {name: _typed(read.frame[name], read.comma_separated) for name in chosen}
    return Log(read.name, columns, names, read.said)


def _of_parquet(path: Path, wanted: list[str], more: list[str]) -> Log:
    from rdeepsense.data.parquet import UNREADABLE, first_repeated

    parquet = require("pyarrow.parquet", "cli")
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            if (twice := first_repeated(names)) is not None:
                raise InputError(f"{path}: has two columns named {twice!r}")
            chosen = _chosen(str(path), names, wanted, more)
            table = file.read(columns=chosen)
            table.validate(full=True)
    except InputError:
        raise
    except UNREADABLE as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{path}: cannot be read as Parquet: {reason}") from error
    if not table.num_rows:
        raise InputError(f"{path}: has a header but no rows")
    return Log(str(path), {name: table[name] for name in chosen}, names)


def _chosen(file: str, names: list[str], wanted: list[str], more: list[str]) -> list[str]:
    from rdeepsense.cli.columns import some

    for name in wanted:
        if name not in names:
            raise InputError(
                f"{file}: has no column {name!r}{nearest(name, names)}; it has {some(names)}"
            )
    return list(dict.fromkeys([*wanted, *(name for name in more if name in names)]))


def _typed(series: pl.Series, comma_separated: bool) -> pl.Series:
    """Return texts that are dates or numbers as such."""
    import polars as pl

    from rdeepsense.cli.reading.columns import as_dates, numbers_in
    from rdeepsense.data.dates import ZONES

    if series.dtype != pl.String:
        return series
    parsed = as_dates(series)
    if parsed is not None and parsed[0].dtype != pl.Time:
        if parsed[1] == ZONES:
            raise InputError(f"column {series.name!r}: {ZONES}")
        return parsed[0]
    found = numbers_in(series.to_frame(), comma_separated)
    return found.columns.get(series.name, series)


def is_numbers(column: Any) -> bool:  # Any: of pyarrow or polars
    """Tell whether a column holds numbers, and not yes/no."""
    kind = str(getattr(column, "type", getattr(column, "dtype", ""))).lower()
    return kind.startswith(("int", "uint", "float", "double", "halffloat", "decimal"))
