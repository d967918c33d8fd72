"""Reading and writing tables: CSV (comma, semicolon or tab) and Parquet."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from rdeepsense.errors import InputError, require
from rdeepsense.files import write_whole

if TYPE_CHECKING:
    import polars as pl

MISSING_WORDS = ["", "NA", "N/A", "NaN", "nan", "null"]
SEPARATORS = (",", ";", "\t")
WRITABLE = (".csv", ".tsv", ".parquet")
PROBE = 65_536  # bytes that tell what kind of file it is


def read_table(path: Path) -> pl.DataFrame:
    """Return the table in a file; what is no table is refused with the reason."""
    from rdeepsense.data.parquet import UNREADABLE

    polars = require("polars", "cli")
    kind = _kind(path)
    try:
        frame = (_read_parquet if kind == "parquet" else _read_csv)(path, polars)
    except InputError:
        raise
    except (polars.exceptions.PolarsError, csv.Error, *UNREADABLE) as error:
        if "fields" in str(error):
            _check_widths(path)  # names the line, which polars does not
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{path}: cannot be read as {kind}: {reason}") from error
    if frame.width == 0 or frame.height == 0:
        raise InputError(f"{path}: has a header but no rows")
    table: pl.DataFrame = frame
    return table


def write_table(path: Path, frame: pl.DataFrame) -> None:
    """Write CSV, TSV or Parquet, by the name's ending, whole or not at all."""
    buffer = io.BytesIO()
    if path.suffix.lower() == ".parquet":
        frame.write_parquet(buffer)
    else:
        frame.write_csv(buffer, separator="\t" if path.suffix.lower() == ".tsv" else ",")
    write_whole(path, buffer.getvalue())


def check_suffix(path: Path) -> None:
    """Refuse names from whose ending the format is not clear."""
    if path.suffix.lower() not in WRITABLE:
        raise InputError(f"{path}: the name must end in one of {', '.join(WRITABLE)}")


def _kind(path: Path) -> str:
    """Return "csv" or "parquet", told by the content."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, not a table")
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    with path.open("rb") as file:
        start = file.read(PROBE)
    if not start.strip():
        raise InputError(f"{path}: is empty")
    if start.startswith(b"PAR1"):
        return "parquet"
    if start[8:10] == b'{"':
        raise InputError(f"{path}: is a safetensors file (a model?), not a table")
    if b"\0" in start or not _is_text(start):
        raise InputError(f"{path}: is not a table: neither Parquet nor CSV in UTF-8 text")
    return "csv"


def _is_text(start: bytes) -> bool:
    try:
        start.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return error.start > len(start) - 4  # a letter cut in two where the probe ends
    return True


def _read_parquet(path: Path, polars: ModuleType) -> pl.DataFrame:
    """Read by pyarrow: of a damaged file polars may ask for so much memory that it is ended."""
    parquet = require("pyarrow.parquet", "cli")
    with parquet.ParquetFile(path) as file:
        table = file.read()
    table.validate(full=True)  # texts that are none, and lengths beyond their values
    try:
        frame: pl.DataFrame = polars.from_arrow(table)
    except polars.exceptions.PanicException as error:  # of a name that is no text
        raise ValueError("it is damaged") from error
    return frame


def _read_csv(path: Path, polars: ModuleType) -> pl.DataFrame:
    separator, _ = _header(path)
    with path.open("rb") as file:
        frame: pl.DataFrame = polars.read_csv(
            file,
            separator=separator,
            null_values=MISSING_WORDS,
            infer_schema_length=None,  # a column's type must not depend on its first rows alone
        )
    # A short row leaves its last column empty, so only then is it worth looking line by line.
    if frame.height and frame[:, -1].null_count():
        _check_widths(path)
        empty = frame.select(polars.all_horizontal(polars.all().is_null())).to_series()
        while frame.height and empty[frame.height - 1]:  # blank lines at the end
            frame = frame.head(frame.height - 1)
    return frame


def _header(path: Path) -> tuple[str, list[str]]:
    """Return the separator and the columns' names, refused where they cannot be names."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
    separator = max(SEPARATORS, key=first.count)
    header = next(csv.reader([first], delimiter=separator), [])
    seen: set[str] = set()
    for name in header:
        if name in seen:
            raise InputError(f"{path}: has two columns named {name!r}")
        seen.add(name)
    if header and all(_is_number(name) for name in header):
        raise InputError(f"{path}: the first row holds numbers; it must hold the columns' names")
    return separator, header


def _check_widths(path: Path) -> None:
    """Refuse rows of another length than the header: polars fills up those that are too short."""
    separator, header = _header(path)
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as file:
        rows = csv.reader(file, delimiter=separator)
        try:
            for row in rows:
                if row and len(row) != len(header):
                    raise InputError(
                        f"{path}: line {rows.line_num} has {len(row)} fields, "
                        f"the header has {len(header)}"
                    )
        except csv.Error as error:
            raise InputError(f"{path}: line {rows.line_num}: {error}") from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
