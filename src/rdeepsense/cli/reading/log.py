"""The columns of a sensor log that are needed, as arrays: of Parquet by pyarrow alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.reading.content import STDIN
from rdeepsense.errors import InputError, nearest, require

if TYPE_CHECKING:
    import polars as pl

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
    from rdeepsense.cli.reading.table import read_table

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

    from rdeepsense.cli.reading.dates import as_dates
    from rdeepsense.cli.reading.numbers import numbers_in
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
