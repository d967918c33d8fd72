"""Dates and times: found in columns of text, and made into numbers where that is asked for.

Of hour, weekday, month and yearday come two inputs each, sin and cos of 2 pi value / period, so
that midnight is near 23:59; year is a number. The clock is the one the table shows: an offset such
as +02:00 is not applied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl

PERIODS = {"hour": 24.0, "weekday": 7.0, "month": 12.0, "yearday": 365.25, "year": None}
LOOKS_LIKE = re.compile(r"\d{1,4}[-/.]\w{1,3}[-/.]\d{2,4}|\d{1,2}:\d{2}")
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d-%b-%Y")
HOURS = ("", " %H:%M", " %H:%M:%S%.f")
CLOCKS = ("%H:%M", "%H:%M:%S%.f")
MOST_STRAY = 0.05
MADE = re.compile(rf"(.*) \(({'|'.join(PERIODS)})( sin| cos)?\)", re.DOTALL)


def parse_parts(asked: str | None) -> list[str]:
    """Read --datetime hour,weekday."""
    parts = [part.strip() for part in asked.split(",")] if asked else []
    for part in parts:
        if part not in PERIODS:
            raise InputError(
                f"--datetime {asked!r}: {part!r} is unknown; accepted: {', '.join(PERIODS)}"
            )
    return list(dict.fromkeys(parts))


def as_dates(series: pl.Series, text: str | None = None) -> tuple[pl.Series, bool] | None:
    """Return the dates or times of a column, and whether day and month could be exchanged.

    None where it holds something else: text of which more than 5 % is no date. `text` is one of
    its cells, where that is known already.
    """
    import polars as pl

    if series.dtype.is_temporal():
        return (series, False) if series.dtype != pl.Duration else None
    if series.dtype != pl.String:
        return None
    filled = len(series) - series.null_count()
    shown = text if text is not None or not filled else series.drop_nulls()[0]
    if not shown or not LOOKS_LIKE.match(shown.strip()):
        return None
    texts = series.str.strip_chars().str.replace(r"(\d:\d{2}.*?)\s*(Z|[+-]\d{2}:?\d{2})$", "$1")
    texts = texts.str.replace(r"^(\S*\d)T(\d)", "$1 $2")
    enough = math.ceil((1 - MOST_STRAY) * filled)
    for form in CLOCKS:
        found = texts.str.to_time(form, strict=False)
        if len(found) - found.null_count() >= enough:
            return found, False
    fitting = {}
    for form in (day + hour for day in DAYS for hour in HOURS):
        found = texts.str.to_datetime(form, strict=False)
        if len(found) - found.null_count() >= enough:
            fitting[form.partition(" ")[0]] = found
    if not fitting:
        return None
    either = {"%m/%d/%Y", "%d/%m/%Y"} <= set(fitting)
    exchanged = either and not fitting["%m/%d/%Y"].equals(fitting["%d/%m/%Y"])
    return next(iter(fitting.values())), exchanged


def date_inputs(name: str, parsed: tuple[pl.Series, bool], parts: Sequence[str]) -> list[pl.Series]:
    """Return the numbers of a column of dates, called `name (hour sin)` and so on.

    A column of times has hours alone, one of dates no hours.
    """
    import polars as pl

    series, exchanged = parsed
    if exchanged:
        first = series.drop_nulls()[0]
        raise InputError(
            f"column {name!r}: {first:%m/%d/%Y} could be day or month first; write dates as "
            "2024-12-31"
        )
    clock, day = series.dtype != pl.Date, series.dtype != pl.Time
    found = []
    for part in parts:
        if not (clock if part == "hour" else day):
            continue
        values, period = _part(series, part), PERIODS[part]
        if period is None:
            found.append(values.alias(f"{name} ({part})"))
            continue
        angle = values * (2 * math.pi / period)
        found += [
            angle.sin().alias(f"{name} ({part} sin)"),
            angle.cos().alias(f"{name} ({part} cos)"),
        ]
    return found


def source_of(name: str) -> str | None:
    """Return the column of dates that an input of this name is made from; None of another name."""
    made = MADE.fullmatch(name)
    return made[1] if made else None


def with_dates(frame: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """Return the table with those of the named inputs that are parts of its dates, and their dates.

    `time (hour sin)` is made from the column `time`, where the table does not have it itself.
    """
    known, parts = set(frame.columns), dict[str, list[str]]()
    for name in names:
        made = MADE.fullmatch(name)
        if made and name not in known and made[1] in known:
            parts.setdefault(made[1], []).append(made[2])
    columns = []
    for source, asked in parts.items():
        parsed = as_dates(frame[source])
        if parsed is None:
            raise InputError(f"column {source!r} holds no dates; the model needs their {asked[0]}")
        columns += date_inputs(source, parsed, list(dict.fromkeys(asked)))
    return (frame.with_columns(columns) if columns else frame), list(parts)


def _part(series: pl.Series, part: str) -> pl.Series:
    import polars as pl

    own = series.dt
    if part == "hour":
        return own.hour() + own.minute() / 60 + own.second() / 3600
    values = {
        "weekday": lambda: own.weekday() - 1,
        "month": lambda: own.month() - 1,
        "yearday": lambda: own.ordinal_day() - 1,
        "year": own.year,
    }[part]()
    return values.cast(pl.Float64)
