"""A column of times, to put rows in order by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdeepsense.cli.reading.dates import as_dates
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl


def in_order(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the rows in the order of a column of times; rows of one time stay as they were."""
    import polars as pl

    places = pl.DataFrame({"time": times_of(frame, name)}).with_row_index("row")
    return frame[places.sort("time", maintain_order=True)["row"]]


def times_of(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column of numbers, dates or times of day as what can be put in order.

    A cell without a time is refused: its row has no place.
    """
    import polars as pl

    series = frame[name]
    if series.dtype.is_float():
        series = series.fill_nan(None)
    if not series.dtype.is_numeric() and series.null_count() < len(series):
        parsed = as_dates(series)
        if parsed is None and series.dtype != pl.Duration:
            shown = series.drop_nulls()[0]
            raise InputError(f"--time {name!r} holds {shown!r:.60}: neither a number nor a time")
        if parsed is not None and parsed[1]:
            from rdeepsense.data.dates import ZONES

            if parsed[1] == ZONES:
                raise InputError(f"--time {name!r}: {ZONES}")
            raise InputError(
                f"--time {name!r}: in {frame[name].drop_nulls()[0]!r} day or month could be first; "
                "write dates as 2024-12-31"
            )
        series = series if parsed is None else parsed[0]
    if holes := series.null_count():
        row = series.is_null().arg_max() or 0
        raise InputError(
            f"--time {name!r} has no time in {holes:,} of {len(series):,} rows, first in row {row} "
            f"(the first row is 0), which holds {frame[name][row]!r:.60}"
        )
    return series


def moments_of(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column of times, called as it is, as numbers or dates; durations are in seconds."""
    import polars as pl

    series = times_of(frame, name)
    if series.dtype == pl.Duration:
        series = series.dt.total_microseconds() / 1e6
    elif series.dtype == pl.Time:
        series = series.cast(pl.Int64) / 1e9
    elif series.dtype == pl.Date:
        series = series.cast(pl.Datetime)
    return series.alias(name)
