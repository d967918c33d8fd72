"""Writing of tables: CSV, TSV and Parquet, by the name's ending, or CSV on stdout."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rdeepsense._files import write_whole
from rdeepsense.cli.terminal import STDOUT
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl

PIECE = 65_536
WRITABLE = (".csv", ".tsv", ".parquet")


def write_table(path: Path, frame: pl.DataFrame, header: bool = True) -> None:
    """Write CSV, TSV or Parquet, by the name's ending, whole or not at all; CSV to "-".

    Without `header` a CSV has no line of names.
    """
    buffer = io.BytesIO()
    if path.suffix.lower() == ".parquet":
        frame.write_parquet(buffer)
    else:
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        frame.write_csv(buffer, separator=separator, include_header=header)
    if path == STDOUT:
        # In pieces: not every system tells of a reader that goes away during one long write.
        text = buffer.getvalue().decode()
        for begin in range(0, len(text), PIECE):
            sys.stdout.write(text[begin : begin + PIECE])
    else:
        write_whole(path, buffer.getvalue())


def check_suffix(path: Path) -> None:
    """Refuse names from whose ending the format is not clear."""
    if path != STDOUT and path.suffix.lower() not in WRITABLE:
        raise InputError(
            f"{path}: the name must end in one of {', '.join(WRITABLE)}, or be - for CSV on stdout"
        )
