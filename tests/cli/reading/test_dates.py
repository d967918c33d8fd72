"""Dates in many spellings, as sines and cosines of the clock, in UTC where texts have an offset."""

from __future__ import annotations

import datetime as dt
import math

import polars as pl
import pytest

from rdeepsense.cli.reading.columns import as_dates, date_inputs, parse_parts, with_dates
from rdeepsense.errors import InputError


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-17 18:30",
        "2024-05-17T18:30:00",
        "2024-05-17 18:30:00.250",
        "2024-05-17T18:30:00Z",
        "2024-05-17T20:30:00+02:00",
        "2024-05-17 14:30-0400",
        "2024/05/17 18:30",
        "17.05.2024 18:30",
        "05/17/2024 18:30",
        "17/05/2024 18:30",
        "17-05-2024 18:30:00",
        "17-May-2024 18:30",
    ],
)
def test_spellings(text: str) -> None:
    parsed = as_dates(pl.Series("t", [text, None]))
    assert parsed is not None
    assert parsed[0][0].replace(microsecond=0) == dt.datetime(2024, 5, 17, 18, 30)
    assert parsed[0][1] is None
    assert not parsed[1]


@pytest.mark.parametrize("text", ["north", "1.2.3", "12", "A-7", "", "2024-13-45", "10-20-30-40"])
def test_what_is_no_date(text: str) -> None:
    assert as_dates(pl.Series("t", [text] * 3, dtype=pl.String)) is None


def test_values_of_the_parts() -> None:
    day = pl.Series("t", [dt.datetime(2024, 1, 3, 6), dt.datetime(2024, 12, 30, 18, 30)])
    found = {one.name: one for one in date_inputs("t", (day, ""), list(parse_parts("hour,year")))}
    assert list(found) == ["t (hour sin)", "t (hour cos)", "t (year)"]
    assert found["t (hour sin)"][0] == pytest.approx(1)
    assert found["t (hour cos)"][0] == pytest.approx(0, abs=1e-12)
    assert found["t (hour sin)"][1] == pytest.approx(math.sin(2 * math.pi * 18.5 / 24))
    assert found["t (year)"].to_list() == [2024, 2024]
    week = {one.name: one for one in date_inputs("t", (day, ""), ["weekday", "month", "yearday"])}
    assert week["t (weekday sin)"][0] == pytest.approx(math.sin(2 * math.pi * 2 / 7))  # Wednesday
    assert week["t (month cos)"][1] == pytest.approx(math.cos(2 * math.pi * 11 / 12))
    assert week["t (yearday sin)"][0] == pytest.approx(math.sin(2 * math.pi * 2 / 365.25))


def test_times_have_no_days_and_days_no_times() -> None:
    parsed = as_dates(pl.Series("t", ["06:30", "18:00"]))
    assert parsed is not None
    names = [one.name for one in date_inputs("t", parsed, ["hour", "weekday"])]
    assert names == ["t (hour sin)", "t (hour cos)"]
    days = pl.Series("t", [dt.date(2024, 5, 1)])
    names = [one.name for one in date_inputs("t", (days, ""), ["hour", "weekday"])]
    assert names == ["t (weekday sin)", "t (weekday cos)"]


def test_refusals() -> None:
    with pytest.raises(InputError, match="'minute' is unknown; accepted: hour, weekday, month"):
        parse_parts("hour,minute")
    parsed = as_dates(pl.Series("t", ["03/04/2024", "05/06/2024"]))
    assert parsed is not None
    assert parsed[1]
    with pytest.raises(InputError, match="03/04/2024 could be day or month first; write dates as"):
        date_inputs("t", parsed, ["weekday"])
    with pytest.raises(InputError, match="column 't' holds no dates; the model needs their hour"):
        with_dates(pl.DataFrame({"t": [1, 2]}), ["t (hour sin)"])


def test_inputs_of_a_model_are_made_again_by_their_names() -> None:
    frame = pl.DataFrame({"t": ["2024-05-17 06:00"], "a": [1.0], "t (year)": [7.0]})
    found, sources = with_dates(frame, ["a", "t (hour sin)", "t (hour cos)", "t (year)"])
    assert sources == ["t"]
    assert found["t (hour sin)"][0] == pytest.approx(1)
    assert found["t (year)"][0] == 7.0  # the table's own
