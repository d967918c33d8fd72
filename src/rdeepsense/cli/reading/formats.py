"""Parquet, Arrow, JSON and Excel."""

from __future__ import annotations

import io
import json
import warnings
from typing import TYPE_CHECKING, Any

from rdeepsense.cli.reading.content import check_unpacked
from rdeepsense.cli.reading.text import MARKS, as_utf8, header_names
from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    import polars as pl


# --------------------------------------------------------------------------------------------------
# Tables of columns that know their types: Parquet, Arrow and Feather, read by pyarrow
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
# Tables as JSON: an object on each line, or a list of objects
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
# Tables in Excel's files: the first sheet, its first row with a value in it as the names
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
