"""Tables in the order of time: what is held out, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.data.splits import checked_times, distinct, last_rows

Run = Callable[..., tuple[str, str]]


QUICK = ("--quick", "--epochs", 8, "--hidden", 16, "-o", "m.st", "--overwrite", "--json", "-")


def weather(rng: np.random.Generator, days: int = 730) -> pl.DataFrame:
    """A drifting season with an anomaly that lasts for days."""
    day = np.arange(days)
    anomaly = np.zeros(days)
    for k in range(1, days):
        anomaly[k] = 0.8 * anomaly[k - 1] + rng.normal()
    warm = 12 + 8 * np.sin(2 * np.pi * day / 365) + 2 * anomaly + 0.02 * day
    date = np.datetime64("2020-01-01") + day
    return pl.DataFrame(
        {
            "date": date.astype(str),
            "low": warm - 6 - 0.02 * day + rng.normal(size=days),
            "wind": rng.gamma(2, 1, days),
            "high": warm + rng.normal(size=days),
            "kind": np.where(anomaly > 0, "fine", "dull"),
        }
    )


def test_the_last_rows_stay_together_with_those_of_their_time() -> None:
    time = np.repeat(np.arange(50), 4)
    held = last_rows(time, 0.2)
    assert held.sum() == 40
    assert set(time[held]) == set(range(40, 50))
    assert last_rows(np.array([0] * 5 + [1] * 95), 0.2).sum() == 95
    with pytest.raises(rds.InputError, match="all rows have one time"):
        last_rows(np.zeros(9), 0.2)


def test_times_are_numbers_or_dates() -> None:
    days = np.arange("2020-01-01", "2020-01-11", dtype="datetime64[D]")
    zoned = pd.Series(days.astype("datetime64[ns]")).dt.tz_localize("Europe/Berlin")
    for time in (days, days.astype(str), pd.Series(days), pl.Series(days), zoned):
        assert (np.diff(checked_times(time, 10)) > np.timedelta64(0)).all()
    assert checked_times(zoned, 10)[0] == np.datetime64("2019-12-31T23:00")
    with pytest.raises(rds.InputError, match="time lacks a value in row 1"):
        checked_times([0.0, np.nan], 2)
    with pytest.raises(rds.InputError, match="accepted: a number or a date"):
        checked_times(["morning", "noon"], 2)


def test_validation_rows_are_the_last_ones(rng: np.random.Generator) -> None:
    X, time = rng.normal(size=(400, 2)), rng.permutation(400)
    train, held = distinct(X, X[:, 0]).hold_out_last(0.2, time)
    assert time[train.index].max() == 319
    assert time[held.index].min() == 320


def test_fit_holds_out_the_last_rows(rng: np.random.Generator) -> None:
    x = rng.normal(size=800)
    time = np.arange(800)
    y = x + np.where(time < 600, 0.1, 2.0) * rng.normal(size=800)  # noise grows
    settings: dict[str, Any] = {"effort": "quick", "hidden": (16,), "epochs": 15, "device": "cpu"}
    model = rds.RDeepSenseRegressor(random_state=0, **settings)
    with pytest.warns(rds.DataWarning, match="On the last fifth of the time boosted trees"):
        late = model.fit(x[:, None], y, time=time)
    assert late.training_["validated"] == "the last rows in time"
    assert [one.code for one in late.findings_] == ["time-split"]
    late_std = late.predict(np.zeros((1, 1)), return_std=True)[1]
    std = model.fit(x[:, None], y).predict(np.zeros((1, 1)), return_std=True)[1]
    assert late_std > 1.5 * std
    with pytest.raises(rds.InputError, match="give time or groups, not both"):
        model.fit(x[:, None], y, groups=time, time=time)
    with pytest.raises(rds.InputError, match="time has 3 rows"):
        model.fit(x[:, None], y, time=[1, 2, 3])


def fitted(run: Run, table: pl.DataFrame, *options: object, target: str = "high") -> Any:
    table.write_csv("table.csv")
    out, err = run("fit", "table.csv", "--target", target, *QUICK, *options)
    return json.loads(out), err


def test_a_table_in_the_order_of_days_is_tested_on_the_last_ones(
    run: Run, rng: np.random.Generator
) -> None:
    table = weather(rng).drop("kind")
    found, err = fitted(run, table)
    assert [one["code"] for one in found["findings"]] == ["time-order", "time-split"]
    assert "windows" not in found["findings"][0]["cure"]
    assert "time      date: the last rows are the test" in err
    assert "Held-out metrics: the last 146 rows" in err
    assert found["verdict"]["high"]["calibration"] != "right"
    assert "Drift not checked: too few rows." in err
    shuffled, err = fitted(run, table.sample(fraction=1, shuffle=True, seed=0), "--time", "date")
    assert "the last 146 rows" in err
    assert shuffled["rows"]["test"] == 146
    _, err = fitted(run, table, "--no-check")
    assert "Held-out metrics: 146 rows" in err


def test_classes_that_come_and_go_are_tested_in_stretches(
    run: Run, rng: np.random.Generator
) -> None:
    number = np.arange(600) // 150  # one class after the other
    walk = np.cumsum(rng.normal(size=(600, 2)), axis=0)
    table = pl.DataFrame(
        {
            "t": np.arange(600) / 10,
            "a": walk[:, 0],
            "b": walk[:, 1],
            "kind": np.array(list("abcd"))[number],
        }
    )
    found, err = fitted(run, table, target="kind")
    assert "time-order" in [one["code"] for one in found["findings"]]
    assert "groups    stretch of time: found, not given; 20, which no split divides" in err


def test_recordings_between_restarts_of_a_clock_stay_together(rng: np.random.Generator) -> None:
    walks = [np.cumsum(rng.normal(size=(100, 2)), axis=0) for _ in range(12)]
    X = pd.DataFrame(np.concatenate(walks), columns=["ax", "ay"])
    X["seconds"] = np.tile(np.arange(100) / 10, 12)
    report = rds.check(X, np.repeat(list("abcd") * 3, 100))
    assert "which starts again 11 times" in report[0].message
    assert report.groups is not None
    assert np.array_equal(report.groups, np.repeat(np.arange(12), 100))
    assert (report.time, report.group_column) == (None, None)
