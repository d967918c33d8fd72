"""Dates are the same in Python, pandas, polars, pyarrow and on the command line."""

from __future__ import annotations

import datetime as dt
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rdeepsense as rds
from rdeepsense.data.columns import moments_of

Run = Callable[..., tuple[str, str]]

PARTS = ("hour", "yearday")
QUICK: dict[str, Any] = {"effort": "quick", "hidden": (8,), "epochs": 3, "random_state": 0}
ROWS = 96
TIMES = [dt.datetime(2024, 1, 1) + k * dt.timedelta(hours=53) for k in range(ROWS)]
ZONED = [one.replace(tzinfo=dt.UTC).astimezone(ZoneInfo("Europe/Berlin")) for one in TIMES]
A = np.sin(np.arange(ROWS) * 1.7)
Y = A + np.sin(2 * np.pi * np.array([one.hour for one in TIMES]) / 24)
TABLES: dict[str, Any] = {
    "dict": {"t": TIMES, "a": A},
    "dict of numpy": {"t": np.array(TIMES, "datetime64[s]"), "a": A},
    "pandas": pd.DataFrame({"t": TIMES, "a": A}),
    "pandas with a zone": pd.DataFrame({"t": pd.DatetimeIndex(ZONED), "a": A}),
    "pandas with text": pd.DataFrame({"t": [one.isoformat() for one in ZONED], "a": A}),
    "polars": pl.DataFrame({"t": TIMES, "a": A}),
    "polars with a zone": pl.DataFrame({"t": ZONED, "a": A}),
    "pyarrow": pa.table({"t": pa.array(TIMES), "a": A}),
}
OBJECTS = np.array([[t, a] for t, a in zip(TIMES, A, strict=True)], dtype=object)


def model_of(**more: Any) -> rds.RDeepSenseRegressor:
    return rds.RDeepSenseRegressor(**{**QUICK, "check": False, "verbose": False, **more})


@pytest.fixture(scope="module")
def dated() -> rds.RDeepSenseRegressor:
    return model_of(datetime=PARTS).fit(TABLES["pandas"], Y)


@pytest.mark.parametrize("kind", TABLES)
def test_every_table_gives_the_same_inputs_and_the_same_model(
    kind: str, dated: rds.RDeepSenseRegressor
) -> None:
    table = TABLES[kind]
    assert np.array_equal(dated.as_rows(table), dated.as_rows(TABLES["polars"]))
    own = model_of(datetime="hour, yearday").fit(table, Y)
    assert list(own.feature_names_in_) == [
        *("t (hour sin)", "t (hour cos)", "t (yearday sin)", "t (yearday cos)", "a")
    ]
    for predicted in (own.predict(table), dated.predict(table)):
        assert np.array_equal(predicted, dated.predict(TABLES["pandas"]))


@pytest.mark.parametrize("table", [OBJECTS, OBJECTS.tolist()], ids=["objects", "rows"])
def test_arrays_without_names(table: Any, dated: rds.RDeepSenseRegressor) -> None:
    own = model_of(datetime=PARTS).fit(table, Y)
    assert own.feature_names_in_[0] == "x0 (hour sin)"
    assert own.feature_names_in_[-1] == "x1"
    assert np.array_equal(own.predict(table), dated.predict(TABLES["pandas"]))


def test_a_csv_on_the_command_line_is_the_same_table(
    run: Run, tmp_path: Path, dated: rds.RDeepSenseRegressor
) -> None:
    for name, times in (("naive", TIMES), ("zoned", ZONED)):
        frame = pl.DataFrame({"t": [str(one) for one in times], "a": A, "y": Y})
        frame.write_csv(tmp_path / f"{name}.csv")
        run(
            *("fit", f"{name}.csv", "--target", "y", "--datetime", "hour,yearday", "--quick"),
            *("--hidden", 8, "--epochs", 3, "--no-check", "--test-fraction", 0),
            *("-o", f"{name}.safetensors"),
        )
        model = rds.load(tmp_path / f"{name}.safetensors")
        assert model.fitted_.inputs.dated == ("t",)
        for table in TABLES.values():
            assert np.array_equal(model.predict(table), dated.predict(table))
    dated.save(tmp_path / "python.safetensors")
    run("predict", "python.safetensors", "zoned.csv", "-o", "predicted.csv")
    predicted = pl.read_csv(tmp_path / "predicted.csv")
    column = next(name for name in predicted.columns if "mean" in name)
    assert predicted[column].to_numpy() == pytest.approx(dated.predict(TABLES["dict"]), rel=1e-5)


def test_a_live_model_of_an_array_takes_its_rows() -> None:
    model = model_of(datetime="hour").fit(OBJECTS, Y)
    days = OBJECTS[:, :1].astype("datetime64[s]")
    alone = model_of(datetime="year").fit(days, Y)
    found = float(alone.live().predict(days[5]).distribution.mean)
    assert found == pytest.approx(alone.predict(days)[5], rel=1e-12)
    for row in ([TIMES[5], A[5]], OBJECTS[5]):
        found = float(model.live().predict(row).distribution.mean)
        assert found == pytest.approx(model.predict(OBJECTS)[5], rel=1e-12)


def test_a_model_keeps_its_dates(tmp_path: Path, dated: rds.RDeepSenseRegressor) -> None:
    table, mean = TABLES["polars with a zone"], dated.predict(TABLES["pandas"])
    dated.save(tmp_path / "m.safetensors")
    again = rds.load(tmp_path / "m.safetensors")
    assert again.fitted_.inputs.dated == ("t",)
    assert tuple(again.datetime) == PARTS
    assert np.array_equal(again.predict(table), mean)
    rds.export(dated, tmp_path / "m.folded")
    folded = rds.deploy.load(tmp_path / "m.folded")
    assert folded.predict(table) == pytest.approx(mean, rel=1e-5)


def test_everything_else_takes_the_table_too(dated: rds.RDeepSenseRegressor) -> None:
    table = TABLES["pyarrow"]
    assert dated.status(table).tolist() == [0] * ROWS
    assert dated.evaluate(table, Y) == dated.evaluate(TABLES["dict"], Y)
    mean = dated.predict(table)
    live = dated.live()
    rows = (
        {"t": TIMES[5], "a": A[5]},
        {"a": A[5], "t": ZONED[5]},
        TABLES["pandas"].iloc[5],
        TABLES["polars"][5],
        {"t": str(TIMES[5]), "a": A[5]},
    )
    for row in rows:
        assert float(live.predict(row).distribution.mean) == pytest.approx(mean[5], rel=1e-12)
    with pytest.raises(rds.InputError, match="lacks 't'"):
        live.predict({"a": 1.0})


def test_days_of_another_year_are_the_same_days() -> None:
    times = np.datetime64("2022-01-01") + np.arange(ROWS)
    model = model_of(datetime="yearday").fit({"t": times, "a": A}, Y)
    later = {"t": times + 365, "a": A}
    assert np.array_equal(model.predict(later), model.predict({"t": times, "a": A}))
    assert not model.status(later).any()


@pytest.mark.parametrize("kind", TABLES)
def test_dates_that_nobody_asked_for_are_left_out_with_a_word(kind: str) -> None:
    with pytest.warns(rds.DataWarning) as said:
        model = model_of().fit(TABLES[kind], Y)
    assert str(said[0].message) == (
        "Column 't' holds dates, such as '2024-01-01 00:00:00', and is left out. "
        'Add datetime=("hour", "weekday") to use them.'
    )
    assert said[0].filename == __file__
    assert [one.code for one in model.findings_] == ["dates"]
    assert model.n_features_in_ == 1
    # Neither the dates nor their absence change a prediction.
    later = {"t": [one + dt.timedelta(400) for one in TIMES], "a": A}
    assert np.array_equal(model.predict(later), model.predict(TABLES[kind]))
    assert np.array_equal(model.predict({"a": A}), model.predict(later))


@pytest.mark.parametrize("kind", ["dict", "pandas with a zone", "pandas with text", "pyarrow"])
def test_the_check_reads_every_kind_of_date_as_a_time(kind: str) -> None:
    table = TABLES[kind]
    codes = [one.code for one in rds.check(table, np.arange(ROWS, dtype=float))]
    assert codes == [one.code for one in rds.check(TABLES["polars"], np.arange(ROWS, dtype=float))]
    assert "names" not in codes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rds.DataWarning)
        model = model_of(check=True, datetime="hour").fit(table, Y)
    assert "dates" not in [one.code for one in model.findings_]


@pytest.mark.parametrize(
    "estimator",
    [
        *(rds.MCDropRegressor, rds.SSPRegressor, rds.RDeepSenseClassifier),
        *(rds.MCDropClassifier, rds.SSPClassifier),
    ],
)
def test_every_estimator_takes_dates(estimator: Any) -> None:
    own = {"epochs": 2, "hidden": (4,), "random_state": 0, "check": False, "verbose": False}
    y = np.where(Y > 0, "high", "low") if "Classifier" in estimator.__name__ else Y
    model = estimator(datetime=PARTS, **own).fit(TABLES["pandas"], y)
    assert model.n_features_in_ == 5
    same = model.predict(TABLES["polars"]) == model.predict(TABLES["pandas"])
    assert same.all()


def test_a_gaussian_process_takes_dates() -> None:
    pytest.importorskip("gpytorch")
    model = rds.GPRegressor(datetime="hour", random_state=0).fit(TABLES["polars"], Y)
    assert np.array_equal(model.predict(TABLES["pandas"]), model.predict(TABLES["polars"]))


def test_dates_that_lack_in_some_rows() -> None:
    table = TABLES["pandas"].assign(t=TABLES["pandas"]["t"].where(np.arange(ROWS) % 9 > 0))
    model = model_of(datetime="hour").fit(table, Y)
    assert np.isfinite(model.predict(pl.from_pandas(table))).all()
    assert model.fitted_.inputs.missing == "indicator"


def test_refusals() -> None:
    numbers = np.column_stack([A, A**2])
    with pytest.raises(
        rds.InputError, match="datetime = \\('hour',\\): no column of X holds dates"
    ):
        model_of(datetime="hour").fit(numbers, Y)
    with pytest.raises(rds.InputError, match="datetime = 'minute': 'minute' is unknown"):
        model_of(datetime="minute").fit(TABLES["dict"], Y)
    with pytest.raises(rds.InputError, match="X has no column that is an input: 't' holds dates"):
        model_of().fit({"t": TIMES}, Y)
    mixed = [*TIMES[:9], *ZONED[9:]]
    with pytest.raises(rds.InputError, match="column 't': some times have a time zone, others"):
        model_of(datetime="hour").fit({"t": mixed, "a": A}, Y)
    with pytest.raises(rds.InputError, match="X has 96 values in column 't', and 5 in 'a'"):
        model_of().fit({"t": TIMES, "a": A[:5]}, Y)


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"a": A, "d": [dt.timedelta(hours=k) for k in range(ROWS)]}),
        pd.DataFrame({"a": A, "d": pd.to_timedelta(np.arange(ROWS), "h")}),
        np.arange(ROWS).astype("timedelta64[s]")[:, None],
    ],
    ids=["polars", "pandas", "numpy"],
)
def test_durations_are_refused(table: Any) -> None:
    with pytest.raises(rds.InputError, match="X, column .*holds durations .* write it in seconds"):
        model_of().fit(table, Y)


def test_zones_in_a_csv_are_all_or_none(run: Run, tmp_path: Path, capsys: Any) -> None:
    texts = [*(str(one) for one in TIMES[:9]), *(str(one) for one in ZONED[9:])]
    pl.DataFrame({"t": texts, "a": A, "y": Y}).write_csv(tmp_path / "mixed.csv")
    with pytest.raises(AssertionError, match="column 't': some times have a time zone"):
        run("fit", "mixed.csv", "--target", "y", "--datetime", "hour", "--quick")


@pytest.mark.parametrize(
    ("first", "step", "said"),
    [
        ("2023-01-01T00:00", np.timedelta64(1, "h"), "add --datetime hour,weekday to use"),
        (
            "2023-01-01",
            np.timedelta64(1, "D"),
            "'2023-01-01'; add --datetime weekday,yearday to use",
        ),
        ("2023-01", np.timedelta64(1, "M"), "'2023-01-01'; add --datetime month to use"),
        ("1931", np.timedelta64(1, "Y"), "'1931-01-01'; add --datetime year to use"),
    ],
)
def test_what_is_suggested_is_what_a_column_varies_in(
    first: str, step: np.timedelta64, said: str, run: Run, tmp_path: Path
) -> None:
    times = (np.datetime64(first) + np.arange(40) * step).astype("datetime64[us]")
    pl.DataFrame({"t": times, "a": A[:40], "y": Y[:40]}).write_parquet(tmp_path / "table.parquet")
    out, _ = run("check", "table.parquet", "--target", "y")
    assert said in out


@pytest.mark.parametrize("to", ["c99", "package", "web"])
def test_exports_say_how_inputs_are_made(to: str, tmp_path: Path) -> None:
    if to == "web":
        pytest.importorskip("ziglang")
    every = ("hour", "weekday", "month", "yearday", "year")
    model = model_of(datetime=every).fit(TABLES["pandas"], Y)
    rds.export(model, tmp_path / "made", to=to)
    if to == "web":
        text = "".join(one.read_bytes().decode("latin-1") for one in (tmp_path / "made").iterdir()
                       if one.is_file())  # fmt: skip
        assert "= sin(2 pi (d - 1) / 365.25), d the day of the year, 1 to 366" in text
        return
    header = next((tmp_path / "made").rglob("model.h")).read_text()
    readme = (tmp_path / "made" / "README.md").read_text()
    formulas = re.findall(r"x\[(\d+)\]: t \((.*)\)\n +(= )(.*)\n", header)
    assert [int(k) for k, *_ in formulas] == list(range(9))
    rows = model.as_rows(TABLES["pandas"])
    for row in (0, 7, 20, 95):
        own = TIMES[row]
        known = {
            "hour": {"t": own.hour + own.minute / 60 + own.second / 3600},
            "weekday": {"d": (own.date() - dt.date(2024, 1, 1)).days % 7},  # that was a Monday
            "month": {"m": own.month},
            "yearday": {"d": own.timetuple().tm_yday},
        }
        for k, name, _, formula in formulas:
            if name == "year":
                assert formula == "the calendar year, such as 2024"
                assert rows[row, int(k)] == own.year
                continue
            assert f"- x[{k}] = {formula}" in readme
            expression = formula.rpartition("), ")[0].replace("2 pi", "2 * pi *") + ")"
            values = {"sin": math.sin, "cos": math.cos, "pi": math.pi, **known[name.split()[0]]}
            found = eval(expression, values)
            assert found == pytest.approx(rows[row, int(k)], abs=1e-12)


def test_other_models_say_nothing_of_dates(tmp_path: Path) -> None:
    table = {"load (hour sin)": A, "age (year)": A**2}
    rds.export(model_of().fit(table, Y), tmp_path / "made", to="c99")
    assert "2 pi" not in (tmp_path / "made" / "model.h").read_text()
    assert "calendar" not in (tmp_path / "made" / "model.h").read_text()


@pytest.mark.slow
def test_a_report_goes_along_the_date(dated: rds.RDeepSenseRegressor) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        page = rds.report(dated, TABLES["pandas"], Y, time=TABLES["pandas"]["t"].dt.floor("D"))
    html = page.html()
    assert "t: hour of the day" in html
    assert "t: day of the year" in html
    assert "sin)" not in html
    assert "2024-01-01 00:00:00" not in html


def test_compare_leaves_dates_out() -> None:
    with pytest.warns(rds.DataWarning, match="Column 't' holds dates, such as .*, and is left out"):
        found = rds.compare(
            TABLES["pandas"], Y, methods=["MCDrop-3"], splits=1, hidden=(4,), epochs=2,
            verbose=False,
        )  # fmt: skip
    assert found is not None


def test_moments_keep_every_moment_of_a_shared_hour() -> None:
    """Two moments of the hour that comes twice at the end of summer time are an hour apart."""
    berlin = ZoneInfo("Europe/Berlin")
    twice = [dt.datetime(2024, 10, 27, 2, 30, fold=k, tzinfo=berlin) for k in (0, 1)]
    assert moments_of(twice).value("hour").tolist() == [0.5, 1.5]
