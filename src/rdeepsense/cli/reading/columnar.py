"""Tables of columns that know their types: Parquet, Arrow and Feather, read by pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    import polars as pl


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
