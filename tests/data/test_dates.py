"""Parts of dates: the same numbers from every kind of column."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rdeepsense.data.columns import (
    PERIODS,
    Moments,
    checked_parts,
    first_columns,
    formula,
    further_columns,
    holds_dates,
    moments_of,
    part_of,
    value_of,
)
from rdeepsense.errors import InputError

# The first day of a year, a leap day, both sides of the end of summer time, and one before 1970.
NAIVE = [
    dt.datetime(2024, 1, 1),
    dt.datetime(2024, 2, 29, 13, 30, 36),
    dt.datetime(2024, 10, 27, 0, 30),
    dt.datetime(2024, 10, 27, 1, 30),
    dt.datetime(1963, 12, 31, 23, 59, 59),
]
EXPECTED = {
    "hour": [0.0, 13.51, 0.5, 1.5, 23 + 59 / 60 + 59 / 3600],
    "weekday": [0, 3, 6, 6, 1],
    "month": [0, 1, 9, 9, 11],
    "yearday": [0, 59, 300, 300, 364],
    "year": [2024, 2024, 2024, 2024, 1963],
}
BERLIN = [one.replace(tzinfo=dt.UTC).astimezone(ZoneInfo("Europe/Berlin")) for one in NAIVE]
COLUMNS: dict[str, Any] = {
    "numpy": np.array(NAIVE, "datetime64[ms]"),
    "objects": np.array(NAIVE, object),
    "list": NAIVE,
    "list of numpy": list(np.array(NAIVE, "datetime64[s]")),
    "pandas": pd.Series(NAIVE),
    "pandas, zone": pd.Series(pd.DatetimeIndex(NAIVE).tz_localize("UTC").tz_convert("Asia/Tokyo")),
    "pandas, objects": pd.Series(BERLIN, dtype=object),
    "pandas, arrow": pd.Series(NAIVE).astype("timestamp[us][pyarrow]"),
    "pandas, text": pd.Series([str(one) for one in NAIVE]),
    "pandas, categories": pd.Series(NAIVE).astype("category"),
    "polars": pl.Series(NAIVE),
    "polars, zone": pl.Series(BERLIN),
    "pyarrow": pa.chunked_array([NAIVE[:2], NAIVE[2:]]),
    "pyarrow, zone": pa.array(NAIVE, pa.timestamp("us", "America/New_York")),
    "text with offsets": [one.isoformat() for one in BERLIN],
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_column_gives_the_same_numbers(kind: str) -> None:
    column = COLUMNS[kind]
    assert holds_dates(column)
    moments = moments_of(column)
    for part, expected in EXPECTED.items():
        assert moments.value(part) == pytest.approx(expected, abs=1e-12)
    reference = moments_of(COLUMNS["numpy"]).inputs("t", list(PERIODS))
    for name, values in moments.inputs("t", list(PERIODS)).items():
        assert np.array_equal(values, reference[name])


def test_sines_and_cosines_tell_their_value() -> None:
    every = Moments(np.arange("2023-12-30", "2025-01-02", 1_000_003, dtype="datetime64[s]"))
    for part, period in PERIODS.items():
        made = every.inputs("t", [part])
        if period is None:
            assert list(made) == ["t (year)"]
            continue
        sin, cos = made[f"t ({part} sin)"], made[f"t ({part} cos)"]
        assert value_of(sin, cos, part) == pytest.approx(every.value(part), abs=1e-9)
        assert sin[0] == math.sin(every.value(part)[0] * (2 * math.pi / period))


def test_months_of_pandas_are_their_first_day() -> None:
    months = pd.Series(pd.period_range("2024-01", periods=3, freq="M"))
    assert holds_dates(months)
    assert moments_of(months).value("month").tolist() == [0, 1, 2]
    assert moments_of(months).example() == "2024-01-01"


def test_days_times_and_missing_values() -> None:
    days = moments_of(pl.Series([dt.date(2024, 3, 1), None]))
    assert days.parts == ("weekday", "month", "yearday", "year")
    assert np.isnan(days.value("yearday")[1])
    assert days.value("yearday")[0] == 60
    assert days.example() == "2024-03-01"
    clock = moments_of(pl.Series([dt.time(6, 30), None]))
    assert clock.parts == ("hour",)
    assert clock.value("hour")[0] == 6.5
    assert clock.example() == "06:30:00"
    assert moments_of([None, pd.NaT, dt.datetime(2024, 1, 1, 6)]).value("hour")[2] == 6


@pytest.mark.parametrize(
    "column",
    [
        [1.0, 2.0],
        ["north", "south"],
        ["2024-01-01", "north"],
        [dt.datetime(2024, 1, 1), 3.0],
        pl.Series([dt.timedelta(1)]),
        pd.Series([pd.Timedelta(1)]),
        np.array(["2024", "2025"]),
        [None],
    ],
)
def test_what_is_no_date(column: Any) -> None:
    assert not holds_dates(column)


def test_zones_are_all_or_none() -> None:
    with pytest.raises(InputError, match="some times have a time zone, others have none"):
        moments_of([NAIVE[0], BERLIN[1]])
    with pytest.raises(InputError, match="X, column 't': some times have a time zone"):
        first_columns({"t": [NAIVE[0], BERLIN[1]], "a": [1, 2]}, ["hour"])
    with pytest.raises(InputError, match="dates and times of day"):
        moments_of([dt.date(2024, 1, 1), dt.time(1)])


@pytest.mark.parametrize(
    ("first", "step", "parts"),
    [
        ("2024-01-01T00", np.timedelta64(1, "h"), ("hour", "weekday")),
        ("2024-01-01", np.timedelta64(1, "D"), ("weekday", "yearday")),
        ("2024-01", np.timedelta64(1, "M"), ("month",)),
        ("2004", np.timedelta64(1, "Y"), ("year",)),
    ],
)
def test_parts_in_which_a_column_varies(
    first: str, step: np.timedelta64, parts: tuple[str, ...]
) -> None:
    moments = moments_of((np.datetime64(first) + np.arange(60) * step).astype("datetime64[s]"))
    assert moments.varying() == parts


def test_the_argument() -> None:
    assert checked_parts(None) == ()
    assert checked_parts("hour, weekday,hour") == ("hour", "weekday")
    assert checked_parts(("year",)) == ("year",)
    with pytest.raises(InputError, match="'minute' is unknown; accepted: hour, weekday, month"):
        checked_parts(["minute"])
    with pytest.raises(InputError, match="datetime = 3; accepted: None, or some of hour"):
        checked_parts(3)  # type: ignore[arg-type]


def test_names_and_formulas() -> None:
    assert part_of("a (b) (hour sin)") == ("a (b)", "hour", "sin")
    assert part_of("t (minute sin)") is None
    assert formula("t (yearday cos)", ["t"]) == (
        "cos(2 pi (d - 1) / 365.25), d the day of the year, 1 to 366"
    )
    assert formula("t (yearday cos)", []) is None  # a column that happens to be called so


def test_a_later_table_is_read_by_the_names_of_inputs() -> None:
    names = ["t (hour sin)", "a", "t (hour cos)"]
    table = {"a": [1.0], "day": [dt.date(2024, 1, 1)], "t": [dt.time(6)]}
    found = further_columns(table, names)
    assert found is not None
    assert found.names == names
    assert [float(one[0]) for one in found.values] == pytest.approx([1, 1, 0], abs=1e-12)
    missing = further_columns({"a": [1.0], "t": [None]}, names)
    assert missing is not None
    assert np.isnan(missing.values[0][0])
    for bad, said in (
        ({"a": [1.0]}, "X lacks 't'"),
        ({"a": [1.0], "t": [3.0]}, "column 't', holds no dates; the model needs its hour"),
        ({**table, "b": [1.0]}, "X has 'b', which is no input"),
    ):
        with pytest.raises(InputError, match=said):
            further_columns(bad, names)
    with pytest.raises(InputError, match="holds times of day; the model needs its year"):
        further_columns({"t": [dt.time(6)]}, ["t (year)"])
