"""Tables in Parquet files, which may be larger than memory: read row group by row group."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense._files import Remote, is_url
from rdeepsense.arrays import Integers
from rdeepsense.errors import InputError, require

NUMBER = "numbers"
TEXT_BYTES = 32
# What pyarrow raises of a file that is not as it should be.
UNREADABLE = (OSError, ValueError, MemoryError, NotImplementedError, TypeError, OverflowError)
# Of pyarrow, which ships no types.
ArrowTable = Any
ArrowColumn = Any
ArrowType = Any
File = Path | Remote


@dataclass(frozen=True)
class RowGroup:
    """Some rows that lie together: where, how many, and which row of the file is their first."""

    file: int
    number: int
    rows: int
    first: int


class ParquetTable:
    """One Parquet file, or all of a folder or URL, as a table; columns in `ignore` are left out.

    The files must have the same columns; their order is that of the first file, by name.
    """

    def __init__(self, path: str | os.PathLike[str] | Remote, ignore: Iterable[str] = ()) -> None:
        self._parquet = require("pyarrow.parquet", "tasks")
        if isinstance(path, str) and is_url(path):
            path = Remote.of(path)
        self.path = path if isinstance(path, Remote) else Path(path)
        self.files = _files(self.path)
        self.groups: list[RowGroup] = []
        self._metadata: list[Any] = []
        self.columns: dict[str, str] = {}  # the name of each and what it holds
        self.bytes: dict[str, int] = {}  # of a value in memory
        ignored = set(ignore)
        for number, file in enumerate(self.files):
            metadata, types = self._look_at(file)
            found = {name: _kind(type_) for name, type_ in types.items()}
            for name in sorted(ignored - set(found)):
                raise InputError(f"{file}: has no column {name!r} to ignore")
            found = {name: kind for name, kind in found.items() if name not in ignored}
            if number:
                _check_same(found, file, self.columns, self.files[0])
            else:
                self.columns = found
            for name in found:
                self.bytes[name] = max(self.bytes.get(name, 0), _bytes(types[name]))
            self._metadata.append(metadata)
            first = 0
            for group in range(metadata.num_row_groups):
                rows = metadata.row_group(group).num_rows
                if rows:
                    self.groups.append(RowGroup(number, group, rows, first))
                first += rows
        self.rows = sum(group.rows for group in self.groups)

    def read(self, part: int, names: Sequence[str]) -> ArrowTable:
        """Read these columns of a row group, as an Arrow table."""
        group = self.groups[part]
        file = self.files[group.file]
        try:
            with self._parquet.ParquetFile(
                _source(file), metadata=self._metadata[group.file]
            ) as opened:
                table = opened.read_row_group(group.number, columns=list(names))
            table.validate(full=True)
            if table.num_rows != group.rows:
                raise ValueError(f"it has {table.num_rows} rows where it announced {group.rows}")
            return table
        except UNREADABLE as error:
            raise InputError(f"{file}: cannot be read any more: {_reason(error)}") from error

    def rows_of_groups(self, file: int) -> list[int]:
        """Return the rows of each row group of a file, empty ones too."""
        metadata = self._metadata[file]
        return [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]

    def place(self, part: int, row: int) -> str:
        """Tell where a row of a row group is, for messages."""
        group = self.groups[part]
        return f"{self.files[group.file]}, row {group.first + row} (the first row is 0)"

    def description(self) -> str:
        """Return what tells this table from another unread one: names, sizes, times, rows."""
        said = []
        for file, metadata in zip(self.files, self._metadata, strict=True):
            stat = file.stat()
            said.append(f"{file.name} {stat.st_size} {stat.st_mtime_ns} {metadata.num_rows}")
        return "\n".join(said)

    def _look_at(self, file: File) -> tuple[Any, dict[str, ArrowType]]:
        try:
            with self._parquet.ParquetFile(_source(file)) as opened:
                metadata, schema = opened.metadata, opened.schema_arrow
        except UNREADABLE as error:
            raise InputError(f"{file}: cannot be read as Parquet: {_reason(error)}") from error
        if (name := first_repeated(schema.names)) is not None:
            raise InputError(f"{file}: has two columns named {name!r}")
        return metadata, {field.name: field.type for field in schema}


def numbers(column: ArrowColumn) -> NDArray[Any]:
    """Return a column as floats: float32 stays so, the rest becomes float64; nulls become NaN."""
    pyarrow = require("pyarrow", "tasks")
    if column.type != pyarrow.float32():
        column = column.cast(pyarrow.float64(), safe=False)
    values: NDArray[Any] = column.to_numpy()
    return values


def labels(column: ArrowColumn) -> tuple[NDArray[Any], Integers]:
    """Return a column's distinct values, and the number of each row's value; -1 for null."""
    pyarrow = require("pyarrow", "tasks")
    encoded = column.combine_chunks()
    if not pyarrow.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    values = encoded.dictionary
    if pyarrow.types.is_temporal(values.type):  # beyond what Python's own dates can hold
        values = values.cast(f"int{values.type.bit_width}")
    return np.array(values.to_pylist()), codes.astype(np.int64)


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that is there more than once, or None."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _source(file: File) -> Any:  # Any: of pyarrow
    """Return what pyarrow opens: a path, or an open file of another machine."""
    return file.open() if isinstance(file, Remote) else file


def _files(path: File) -> list[File]:
    if isinstance(path, Remote):
        if path.is_file():
            return [path]
        found = [file for file in path.files(".parquet") if file.name[0] not in "._"]
        if not found:
            raise InputError(f"{path}: there is no such file, and none ending in .parquet below")
        return list(found)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder or file")
    files = sorted(f for f in path.glob("*.parquet") if f.is_file() and f.name[0] not in "._")
    if not files:
        raise InputError(f"{path}: holds no file whose name ends in .parquet")
    return list(files)


def _kind(type_: ArrowType) -> str:
    types = require("pyarrow", "tasks").types
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return NUMBER
    if types.is_boolean(type_):
        return "yes/no"
    if types.is_dictionary(type_):
        return _kind(type_.value_type)
    return "text" if types.is_string(type_) or types.is_large_string(type_) else str(type_)


def _bytes(type_: ArrowType) -> int:
    """Return the bytes of one value; text is taken to be short."""
    try:
        return max(1, int(type_.bit_width) // 8)
    except ValueError:
        return TEXT_BYTES


def _check_same(found: dict[str, str], file: File, expected: dict[str, str], first: File) -> None:
    """Refuse a file whose columns are not those of the first."""
    for name, kind in expected.items():
        if name not in found:
            raise InputError(f"{file}: has no column {name!r}, which {first.name} has")
        if found[name] != kind:
            raise InputError(
                f"{file}: column {name!r} holds {found[name]}, in {first.name} it holds {kind}"
            )
    for name in found:
        if name not in expected:
            raise InputError(f"{file}: has a column {name!r}, which {first.name} has not")


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
