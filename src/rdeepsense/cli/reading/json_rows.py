"""Tables as JSON: an object on each line, or a list of objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rdeepsense.cli.reading.encoding import as_utf8
from rdeepsense.errors import InputError, require

if TYPE_CHECKING:
    import polars as pl


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
