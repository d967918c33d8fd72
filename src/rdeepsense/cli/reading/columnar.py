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
        frame: pl.DataFrame = polars.from_arrow(table)
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
