"""Reading of tables and logs from CSV, Parquet, Arrow, JSON and Excel, and of their targets."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.reading.columns import numbers_in
from rdeepsense.cli.reading.content import STDIN, check_unpacked, read_content
from rdeepsense.cli.reading.text import (
    MARKS,
    as_utf8,
    header_names,
    read_delimited,
    without_sentinels,
)
from rdeepsense.errors import InputError, nearest, require

if TYPE_CHECKING:
    import polars as pl


# --------------------------------------------------------------------------------------------------
# Parquet, Arrow and Feather, read by pyarrow
# --------------------------------------------------------------------------------------------------


def read_columnar(name: str, data: bytes, kind: str) -> pl.DataFrame:
    """Read by pyarrow: of a damaged file polars may ask for so much memory that it is ended."""
    from rdeepsense.data.parquet import UNREADABLE, first_repeated

    polars = require("polars", "cli")
    try:
        table = _arrow(data, kind)
        table.validate(full=True)  # texts that are none, and lengths beyond their values
        if (twice := first_repeated(table.column_names)) is not None:
            raise InputError(f"{name}: has two columns named {twice!r}")
        frame: pl.DataFrame = polars.from_arrow(_blank_missing(table))
    except InputError:
        raise
    except polars.exceptions.PanicException as error:  # of a name that is no text
        raise InputError(f"{name}: cannot be read as {kind}: it is damaged") from error
    except (polars.exceptions.PolarsError, *UNREADABLE) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{name}: cannot be read as {kind}: {reason}") from error
    return frame


def _arrow(data: bytes, kind: str) -> Any:  # Any: pyarrow ships no types
    pyarrow = require("pyarrow", "cli")
    source = pyarrow.BufferReader(data)
    if kind == "Parquet":
        with require("pyarrow.parquet", "cli").ParquetFile(source) as file:
            return file.read()
    if kind == "Feather":
        return require("pyarrow.feather", "cli").read_table(source)
    opened = pyarrow.ipc.open_file if data.startswith(b"ARROW1") else pyarrow.ipc.open_stream
    with opened(source) as reader:
        return reader.read_all()


def _blank_missing(table: Any) -> Any:  # Any: pyarrow ships no types
    """Return a table whose missing texts and bytes hold nothing.

    A view of text is a place in a buffer. pyarrow does not check the view of a missing value, and
    both its casts and polars follow it, wherever it points.
    """
    pyarrow = require("pyarrow", "cli")
    columns = [
        pyarrow.chunked_array([_blanked(chunk) for chunk in column.chunks], column.type)
        for column in table.columns
    ]
    return pyarrow.table(columns, schema=table.schema)


def _blanked(array: Any) -> Any:  # Any: pyarrow ships no types
    """Return a validated array, its views of missing values blank; one without views as it is."""
    import numpy as np

    pyarrow = require("pyarrow", "cli")
    types, kind = pyarrow.types, array.type
    if isinstance(array, pyarrow.ExtensionArray):
        return pyarrow.ExtensionArray.from_storage(kind, _blanked(array.storage))
    if types.is_dictionary(kind):
        values = _blanked(array.dictionary)
        return pyarrow.DictionaryArray.from_arrays(array.indices, values, ordered=kind.ordered)
    buffers, length, children = array.buffers(), len(array), None
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(buffers[1] or b"", np.uint8).reshape(-1, 16).copy()
        present = array.is_valid().to_numpy(zero_copy_only=False)
        views[array.offset : array.offset + length][~present] = 0
        buffers[1] = pyarrow.py_buffer(views)
    elif types.is_struct(kind):
        children = [_blanked(array.field(k)) for k in range(kind.num_fields)]
        buffers = buffers[:1]
    elif types.is_fixed_size_list(kind):
        children, buffers = [_blanked(array.values)], buffers[:1]
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        children, buffers = [_blanked(array.values)], buffers[:2]
    else:
        return array
    return pyarrow.Array.from_buffers(kind, length, buffers, offset=array.offset, children=children)


# --------------------------------------------------------------------------------------------------
# JSON: one object per line, or a list of objects
# --------------------------------------------------------------------------------------------------


def read_json(name: str, data: bytes) -> tuple[pl.DataFrame, list[str]]:
    """Return the table, and what was assumed; a key that an object lacks is missing there."""
    polars = require("polars", "cli")
    text, encoding = as_utf8(name, data)
    rows = _rows(name, text)
    names = list(dict.fromkeys(key for row in rows for key in row))
    columns = {key: [row.get(key) for row in rows] for key in names}
    series = [column(key, values) for key, values in columns.items()]
    frame: pl.DataFrame = polars.DataFrame(series)
    return frame, [encoding] if encoding else []


def _rows(name: str, text: bytes) -> list[dict[str, object]]:
    if text.lstrip().startswith(b"["):
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name}: cannot be read as JSON: {error}") from error
    else:
        rows = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                rows.append(_object(name, number, line))
    for number, row in enumerate(rows):
        if type(row) is not dict:
            raise InputError(
                f"{name}: row {number} is no JSON object; accepted: lines, or a list, of objects"
            )
    found: list[dict[str, object]] = rows
    return found


def _object(name: str, number: int, line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: line {number} is no JSON: {error}") from error


def column(name: str, values: list[object]) -> pl.Series:
    """Return a column of numbers, of yes/no, of dates, or of text where kinds are mixed."""
    polars = require("polars", "cli")
    kinds = {type(value) for value in values if value is not None}
    try:
        if kinds <= {int, float} or len(kinds) == 1:
            number = polars.Float64 if float in kinds else None
            found: pl.Series = polars.Series(name, values, dtype=number)
            return found
    except (OverflowError, TypeError, polars.exceptions.PolarsError):
        pass
    texts = [None if value is None else str(value) for value in values]
    plain: pl.Series = polars.Series(name, texts, dtype=polars.String)
    return plain


# --------------------------------------------------------------------------------------------------
# Excel: the first sheet, with names in its first nonempty row
# --------------------------------------------------------------------------------------------------


def read_excel(name: str, data: bytes) -> tuple[pl.DataFrame, list[str]]:
    """Return the table, and which sheet of how many it is; formulas count as their last value."""
    polars = require("polars", "cli")
    openpyxl = require("openpyxl", "tables")
    check_unpacked(name, data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and other things that are no values
            book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            title, count = book.sheetnames[0], len(book.sheetnames)
            rows = [list(row) for row in book[title].iter_rows(values_only=True)]
    except Exception as error:  # of zip, XML or numbers, whatever is damaged
        raise InputError(f"{name}: cannot be read as Excel: {error}") from error
    filled = [row for row in rows if any(cell is not None for cell in row)]
    if not filled:
        raise InputError(f"{name}: the sheet {title!r} is empty")
    width = max(max(k for k, cell in enumerate(row) if cell is not None) + 1 for row in filled)
    header = ["" if cell is None else str(cell) for cell in filled[0][:width]]
    names = header_names(name, header + [""] * (width - len(header)))
    columns = []
    for place, own in enumerate(names):
        cells = [row[place] if place < len(row) else None for row in filled[1:]]
        columns.append(column(own, [None if cell in MARKS else cell for cell in cells]))
    frame: pl.DataFrame = polars.DataFrame(columns)
    return frame, [f"sheet {title!r}, the first of {count}"] if count > 1 else []


# --------------------------------------------------------------------------------------------------
# Reading of a table, with the format detected from its content
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
# Target columns: text that contains numbers, and invalid cells
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
# Columns of a sensor log as arrays
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
    from rdeepsense.data.columns import ZONES

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
