"""Reading of a table: CSV, Parquet, Arrow, Excel or JSON, told by its content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.columnar import read_columnar
from rdeepsense.cli.reading.content import read_content
from rdeepsense.cli.reading.delimited import read_delimited
from rdeepsense.cli.reading.excel import read_excel
from rdeepsense.cli.reading.json_rows import read_json
from rdeepsense.cli.reading.marks import without_sentinels
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl


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
