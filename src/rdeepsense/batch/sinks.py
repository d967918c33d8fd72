"""Where tables of answers go, some rows at a time: Parquet, or text with separators.

`encode` does what takes long, in whatever thread; `write` puts the results one after the other.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Protocol

from rdeepsense.data.parquet import ArrowTable
from rdeepsense.errors import require


class Sink(Protocol):
    """A file that grows by some rows at a time."""

    def encode(self, table: ArrowTable) -> Any:
        """Make of rows what `write` takes; several threads may do so."""

    def write(self, encoded: Any) -> None:
        """Write rows, in order."""


class ParquetSink:
    """A Parquet file, a row group for each chunk, with a record in its metadata."""

    def __init__(self, file: Any, metadata: dict[bytes, bytes] | None = None) -> None:
        self._file, self._metadata = file, metadata
        self._writer: Any = None

    def encode(self, table: ArrowTable) -> ArrowTable:
        """Return the table: pyarrow encodes while it writes."""
        return table

    def write(self, encoded: ArrowTable) -> None:
        """Write a row group; the first decides the columns."""
        if self._writer is None:
            schema = encoded.schema.with_metadata(self._metadata)
            # Numbers of predictions hardly repeat: a dictionary of them is work for nothing.
            texts = [field.name for field in schema if str(field.type) == "string"]
            parquet = require("pyarrow.parquet", "cli")
            self._writer = parquet.ParquetWriter(self._file, schema, use_dictionary=texts)
        self._writer.write_table(encoded)

    def close(self) -> None:
        """Write the footer, before the file is closed: pyarrow would try to do so afterwards."""
        if self._writer is not None:
            self._writer.close()


class TextSink:
    """CSV or TSV: a header, then rows; `put` takes bytes."""

    def __init__(self, put: Callable[[bytes], object], separator: str = ",") -> None:
        self._put, self._separator = put, separator
        self._begun = False

    def encode(self, table: ArrowTable) -> tuple[bytes, bytes]:
        """Return the line of names and those of rows."""
        frame: Any = require("polars", "cli").from_arrow(table)
        header, rows = io.BytesIO(), io.BytesIO()
        frame.clear().write_csv(header, separator=self._separator)
        frame.write_csv(rows, separator=self._separator, include_header=False)
        return header.getvalue(), rows.getvalue()

    def write(self, encoded: tuple[bytes, bytes]) -> None:
        """Write rows, after the names where they are the first."""
        if not self._begun:
            self._put(encoded[0])
            self._begun = True
        self._put(encoded[1])
