"""Tables as text: CSV, whatever divides it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.dialect import NAMES, Dialect, dialect_of
from rdeepsense.cli.reading.encoding import as_utf8
from rdeepsense.cli.reading.marks import MARKS
from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    import polars as pl


def read_delimited(
    name: str, data: bytes, texts: Sequence[str] = ()
) -> tuple[pl.DataFrame, list[str], str]:
    """Return the table, what was assumed, and the separator.

    Columns named in `texts` stay as they are written: 007 is no number then.
    """
    polars = require("polars", "cli")
    text, encoding = as_utf8(name, data)
    found = dialect_of(name, text)
    try:
        frame: pl.DataFrame = polars.read_csv(
            found.data,
            separator=found.separator,
            null_values=list(MARKS),
            infer_schema_length=None,  # a column's type must not depend on its first rows alone
        )
    except (polars.exceptions.PolarsError, csv.Error) as error:
        if "fields" in str(error):
            _check_widths(name, found)  # names the line, which polars does not
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{name}: cannot be read as CSV: {reason}") from error
    if frame.width == len(found.names):
        frame.columns = found.names
    for column in [k for k, own in enumerate(found.names) if own in texts]:
        own = polars.read_csv(
            found.data,
            separator=found.separator,
            null_values=list(MARKS),
            infer_schema_length=0,
            columns=[column],
        )
        frame = frame.with_columns(own.to_series().alias(found.names[column]))
    # A short row leaves its last column empty, so only then is it worth looking line by line.
    if frame.height and frame[:, -1].null_count():
        _check_widths(name, found)
        empty = frame.select(polars.all_horizontal(polars.all().is_null())).to_series()
        while frame.height and empty[frame.height - 1]:  # blank lines at the end
            frame = frame.head(frame.height - 1)
    frame = frame.with_columns(polars.selectors.string().str.strip_chars())
    return frame, assumed(found, encoding), found.separator


def assumed(found: Dialect, encoding: str | None) -> list[str]:
    """Say what was assumed of a text: its encoding, its separator, and what was skipped."""
    said = [encoding] if encoding else []
    if found.separator not in (",", "\t") and "columns separated by spaces" not in found.said:
        said.append(f"columns separated by {NAMES.get(found.separator, repr(found.separator))}")
    return [*said, *found.said]


def _check_widths(name: str, found: Dialect) -> None:
    """Refuse rows of another length than the header: polars fills up those that are too short."""
    wanted = len(found.names)
    lines = io.StringIO(found.data.decode(errors="replace"), newline="")
    rows = csv.reader(lines, delimiter=found.separator)
    try:
        for row in rows:
            if row and len(row) != wanted:
                line, hint = rows.line_num + found.skipped, ""
                if found.separator == "," and len(row) == 2 * wanted:
                    hint = "; numbers with decimal commas need another separator, such as ;"
                elif wanted == 1:
                    hint = "; the header must be the first line, but for comments that begin with #"
                raise InputError(
                    f"{name}: line {line} has {len(row)} fields, the header has {wanted}{hint}"
                )
    except csv.Error as error:
        line = rows.line_num + found.skipped
        raise InputError(f"{name}: line {line}: {error}") from error
