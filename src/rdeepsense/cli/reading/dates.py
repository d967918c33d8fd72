"""Dates and times in columns of text, and inputs made of them (`rdeepsense.data.dates`).

Texts with an offset, such as +02:00, are converted to UTC, as columns with a time zone are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from rdeepsense.data.dates import Moments

LOOKS_LIKE = re.compile(r"\d{1,4}[-/.]\w{1,3}[-/.]\d{2,4}|\d{1,2}:\d{2}")
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d-%b-%Y")
HOURS = ("", " %H:%M", " %H:%M:%S%.f")
CLOCKS = ("%H:%M", "%H:%M:%S%.f")
NANOSECONDS = 60_000_000_000  # of a minute
OFFSET = r"(\d:\d{2}.*?)\s*(Z|[+-]\d{2}:?\d{2})$"
MOST_STRAY = 0.05


def parse_parts(asked: str | None) -> list[str]:
    """Read --datetime hour,weekday."""
    from rdeepsense.data.dates import checked_parts

    return list(checked_parts(asked, "--datetime"))


def source_of(name: str) -> str | None:
    """Return the column of dates that an input of this name is made from; None of another name."""
    from rdeepsense.data import dates

    return dates.source_of(name)


def as_dates(series: pl.Series, text: str | None = None) -> tuple[pl.Series, str] | None:
    """Return the dates or times of a column, and why they are not certain: "" where they are.

    None where it holds something else: text of which more than 5 % is no date. `text` is one of
    its cells, where that is known already. Offsets of texts are applied: the result is in UTC.
    """
    import polars as pl

    if series.dtype.is_temporal():
        return (series, "") if series.dtype != pl.Duration else None
    if series.dtype != pl.String:
        return None
    filled = len(series) - series.null_count()
    shown = text if text is not None or not filled else series.drop_nulls()[0]
    if not shown or not LOOKS_LIKE.match(shown.strip()):
        return None
    texts = series.str.strip_chars()
    offsets = texts.str.extract(OFFSET, 2)
    texts = texts.str.replace(OFFSET, "$1").str.replace(r"^(\S*\d)T(\d)", "$1 $2")
    enough = math.ceil((1 - MOST_STRAY) * filled)
    for form in CLOCKS:
        found = texts.str.to_time(form, strict=False)
        if len(found) - found.null_count() >= enough:
            return _in_utc(found, offsets)
    fitting = {}
    for form in (day + hour for day in DAYS for hour in HOURS):
        found = texts.str.to_datetime(form, strict=False)
        if len(found) - found.null_count() >= enough:
            fitting[form.partition(" ")[0]] = found
    if not fitting:
        return None
    dates = next(iter(fitting.values()))
    either = {"%m/%d/%Y", "%d/%m/%Y"} <= set(fitting)
    if either and not fitting["%m/%d/%Y"].equals(fitting["%d/%m/%Y"]):
        first = dates.drop_nulls()[0]
        return dates, f"{first:%m/%d/%Y} could be day or month first; write dates as 2024-12-31"
    return _in_utc(dates, offsets)


def _in_utc(found: pl.Series, offsets: pl.Series) -> tuple[pl.Series, str]:
    """Apply the offsets that texts had; some with and some without are not certain."""
    import polars as pl

    if offsets.null_count() == len(offsets):
        return found, ""
    if (found.is_not_null() & offsets.is_null()).any():
        from rdeepsense.data.dates import ZONES

        return found, ZONES
    digits = offsets.str.replace("Z", "+00:00", literal=True).str.replace(":", "", literal=True)
    minutes = digits.str.slice(1, 2).cast(pl.Int64) * 60 + digits.str.slice(3, 2).cast(pl.Int64)
    sign = digits.str.starts_with("-").cast(pl.Int64) * 2 - 1
    if found.dtype == pl.Time:
        moved = (found.cast(pl.Int64) + sign * minutes * NANOSECONDS) % (1440 * NANOSECONDS)
        return moved.cast(pl.Time), ""
    return found + (sign * minutes * 60_000_000).cast(pl.Duration("us")), ""


def date_inputs(
    name: str, parsed: tuple[pl.Series, str], parts: Sequence[str], known: bool = False
) -> list[pl.Series]:
    """Return the numbers of a column of dates, called `name (hour sin)` and so on.

    A column of times has hours alone, one without a time of day no hours, unless a model is
    `known` to take them.
    """
    import polars as pl

    moments = certain(name, parsed)
    usable = [part for part in parts if part in moments.parts or (known and moments.has_days)]
    made = moments.inputs(name, usable)
    return [pl.Series(said, values).fill_nan(None) for said, values in made.items()]


def certain(name: str, parsed: tuple[pl.Series, str]) -> Moments:
    """Return dates that are certain; refuse others."""
    series, doubt = parsed
    if doubt:
        raise InputError(f"column {name!r}: {doubt}")
    from rdeepsense.data.dates import moments_of

    return moments_of(series)


def with_dates(frame: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """Return the table with those of the named inputs that are parts of its dates, and their dates.

    `time (hour sin)` is made from the column `time`, where the table does not have it itself.
    """
    from rdeepsense.data.dates import part_of

    known, parts = set(frame.columns), dict[str, list[str]]()
    for name in names:
        made = part_of(name)
        if made and name not in known and made[0] in known:
            parts.setdefault(made[0], []).append(made[1])
    columns = []
    for source, asked in parts.items():
        parsed = as_dates(frame[source])
        if parsed is None:
            raise InputError(f"column {source!r} holds no dates; the model needs their {asked[0]}")
        columns += date_inputs(source, parsed, list(dict.fromkeys(asked)), known=True)
    return (frame.with_columns(columns) if columns else frame), list(parts)
