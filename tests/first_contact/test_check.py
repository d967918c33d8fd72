"""The check of the data: every planted fault is found, and ordinary tables raise no warning."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import datasets

import rdeepsense as rds
from rdeepsense import InputError


def codes(report: rds.CheckReport, severity: str | None = None) -> set[str]:
    return {one.code for one in report if severity in (None, one.severity)}


def table(rng: np.random.Generator, rows: int = 500, columns: int = 4) -> tuple[Any, Any]:
    """Independent rows with a noisy target."""
    X = rng.normal(size=(rows, columns))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=rows)


def same_partition(one: Any, other: Any) -> bool:
    """Tell whether two labelings divide rows alike."""
    pairs = {*zip(np.asarray(one).tolist(), np.asarray(other).tolist(), strict=True)}
    return len(pairs) == len(np.unique(one)) == len(np.unique(other))


def test_independent_rows_have_no_findings(rng: np.random.Generator) -> None:
    X, y = table(rng)
    report = rds.check(X, y)
    assert list(report) == []
    assert (report.rows, report.inputs, report.task) == (500, 4, "regression")
    assert report.groups is None
    assert str(report) == "nothing found in 500 rows"


# Inputs that give the target away.


def test_a_column_that_is_the_target_is_found(rng: np.random.Generator) -> None:
    X, y = table(rng)
    report = rds.check(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "fahrenheit": 1.8 * y + 32}), y)
    assert [(one.code, one.columns) for one in report.warnings] == [
        ("target-copy", ("fahrenheit",))
    ]


def test_a_monotone_function_of_the_target_is_found(rng: np.random.Generator) -> None:
    X, y = table(rng)
    report = rds.check(np.column_stack([X, np.exp(y)]), y)
    assert [(one.code, one.columns) for one in report.warnings] == [("leak", ("4",))]


def test_a_noisy_copy_of_the_target_is_found(rng: np.random.Generator) -> None:
    X, y = table(rng)
    report = rds.check(np.column_stack([X, y + 1e-3 * rng.normal(size=len(y))]), y)
    assert [(one.code, one.columns) for one in report.warnings] == [("leak", ("4",))]


def test_one_of_several_targets_is_enough(rng: np.random.Generator) -> None:
    X, y = table(rng)
    report = rds.check(np.column_stack([X, 3 * y]), np.column_stack([rng.normal(size=500), y]))
    assert codes(report, "warning") == {"target-copy"}


def test_numbers_that_separate_the_classes_are_found(rng: np.random.Generator) -> None:
    X, y = table(rng)
    label = np.where(y > 1, "high", "low")
    report = rds.check(np.column_stack([X, (y > 1) + 0.1 * rng.normal(size=500)]), label)
    assert [(one.code, one.columns) for one in report.warnings] == [("leak", ("4",))]


def test_text_that_names_the_class_is_found(rng: np.random.Generator) -> None:
    X, y = table(rng)
    label = np.digitize(y, [0, 1])
    named = pl.DataFrame({"a": X[:, 0], "kind": [["cold", "mild", "hot"][k] for k in label]})
    assert [(one.code, one.columns) for one in rds.check(named, label).warnings] == [
        ("leak", ("kind",))
    ]


def test_a_strong_input_is_no_leak(rng: np.random.Generator) -> None:
    X, y = table(rng)
    assert codes(rds.check(np.column_stack([X, y + 0.1 * y.std() * rng.normal(size=500)]), y)) == (
        set()
    )


def test_a_target_that_other_inputs_give_as_well_is_no_leak(rng: np.random.Generator) -> None:
    x = rng.uniform(size=500)
    report = rds.check(np.column_stack([np.sin(x), np.cos(x)]), x + 1e-3 * x**2)
    assert codes(report, "warning") == set()


def test_a_single_input_may_give_the_target(rng: np.random.Generator) -> None:
    x = rng.uniform(size=(200, 1))
    assert codes(rds.check(x, 2 * x[:, 0]), "warning") == set()


# Rows that belong together.


@pytest.mark.parametrize("kind", [str, int])
def test_a_number_of_recordings_is_found(rng: np.random.Generator, kind: type) -> None:
    number = np.repeat(np.arange(40), 50)
    names = [f"R{k}" for k in number] if kind is str else number
    X = pl.DataFrame({"a": rng.normal(size=2000), "b": rng.normal(size=2000), "rec": names})
    report = rds.check(X, np.array(["a", "b", "c", "d"])[number % 4])
    assert [(one.code, one.columns) for one in report.warnings] == [("recordings", ("rec",))]
    assert report[0].option == "--groups 'rec'"
    assert report.group_column == "rec"
    assert same_partition(report.groups, number)


def test_entities_are_found_by_what_inputs_leave_open(rng: np.random.Generator) -> None:
    person = rng.integers(0, 30, 600)
    X = np.column_stack([rng.normal(size=(600, 2)), person])
    y = np.sin(2 * X[:, 0]) + rng.normal(size=30)[person] + 0.7 * rng.normal(size=600)
    report = rds.check(X, y)
    assert [(one.code, one.columns) for one in report.warnings] == [("entities", ("2",))]
    assert same_partition(report.groups, person)


def test_entities_of_classes_are_found(rng: np.random.Generator) -> None:
    person = rng.integers(0, 30, 900)
    sick = rng.uniform(size=30)[person] > rng.uniform(size=900) ** 2 + 0.2
    X = pd.DataFrame({"x": rng.normal(size=900), "person": [f"P{k}" for k in person]})
    report = rds.check(X, np.where(sick, "yes", "no"))
    assert codes(report, "warning") == {"entities"}
    assert report.group_column == "person"


@pytest.mark.parametrize("levels", [10, 40])
def test_whole_numbers_with_a_trend_are_no_entities(rng: np.random.Generator, levels: int) -> None:
    age = rng.integers(0, levels, 800)
    X = np.column_stack([rng.normal(size=(800, 2)), age])
    y = X[:, 0] + np.sin(3 * age / levels) + 0.3 * rng.normal(size=800)
    assert codes(rds.check(X, y)) == set()


def test_levels_without_an_effect_are_no_entities(rng: np.random.Generator) -> None:
    X, y = table(rng, 800)
    named = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "lot": rng.integers(0, 25, 800).astype(str)})
    assert codes(rds.check(named, y)) == set()


@pytest.mark.parametrize("rows", [60, 120, 400])
def test_chance_makes_no_entities(rng: np.random.Generator, rows: int) -> None:
    """Of 20 tables of noise with 3 candidates each, none has entities."""
    for _ in range(20):
        X = np.column_stack([rng.normal(size=rows), rng.integers(0, 15, size=(rows, 3))])
        assert codes(rds.check(X, rng.normal(size=rows))) == set()


@pytest.mark.parametrize(("blocks", "copies", "jitter"), [(60, 20, 1e-4), (100, 20, 1e-6)])
def test_near_copies_are_found(
    rng: np.random.Generator, blocks: int, copies: int, jitter: float
) -> None:
    situation = rng.permutation(np.repeat(np.arange(blocks), copies))
    points = rng.normal(size=(blocks, 3))
    X = points[situation] + jitter * rng.normal(size=(len(situation), 3))
    y = (points[:, 0] + rng.normal(size=blocks))[situation]
    report = rds.check(X, y)
    assert codes(report, "warning") == {"near-copies"}
    assert same_partition(report.groups, situation)
    assert report.group_column is None


@pytest.mark.parametrize(("blocks", "copies"), [(2000, 2), (10, 200)])
def test_pairs_and_large_blocks_of_near_copies_are_found(
    rng: np.random.Generator, blocks: int, copies: int
) -> None:
    situation = np.repeat(np.arange(blocks), copies)
    X = rng.normal(size=(blocks, 4))[situation] + 1e-4 * rng.normal(size=(len(situation), 4))
    report = rds.check(X, rng.normal(size=len(X)))
    assert codes(report, "warning") == {"near-copies"}
    assert same_partition(report.groups, situation)


def grid(rng: np.random.Generator) -> Any:
    return rng.integers(0, 6, size=(800, 3)).astype(float)


DISCRETE = {
    "grid": grid,
    "rounded": lambda rng: np.round(rng.normal(size=(800, 2)), 1),
    "whole numbers": lambda rng: rng.poisson(5, size=(800, 4)),
    "a fine column among coarse ones": lambda rng: np.column_stack(
        [grid(rng), rng.normal(size=800)]
    ),
    "exact copies": lambda rng: np.repeat(rng.normal(size=(400, 3)), 2, axis=0),
    "heavy tails": lambda rng: np.column_stack(
        [rng.standard_cauchy(size=(800, 2)), rng.integers(0, 2, 800)]
    ),
    "one line": lambda rng: rng.uniform(size=(800, 1)) * np.arange(1.0, 4.0),
    "a few rows far out": lambda rng: np.vstack(
        [rng.normal(size=(390, 2)), rng.normal(size=(10, 2)) - [999, 0]]
    ),
    "three clusters": lambda rng: rng.normal(size=(600, 2)) + 500 * np.arange(600)[:, None] % 1500,
    "mostly zero": lambda rng: rng.exponential(size=(800, 3)) * (rng.uniform(size=(800, 3)) < 0.2),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_other_tables_have_no_near_copies(rng: np.random.Generator, name: str) -> None:
    X = DISCRETE[name](rng)
    y = X[:, 0] + rng.normal(size=len(X)) * (1 + X[:, 0].std())
    assert codes(rds.check(X, y), "warning") == set()


# Identifiers.


def test_text_that_does_not_recur_is_left_out(rng: np.random.Generator) -> None:
    x = rng.normal(size=1000)
    serial = [f"SN{k // 2:04d}" for k in rng.permutation(1000)]
    report = rds.check(pl.DataFrame({"x": x, "serial": serial}), 10 * x + rng.normal(size=1000))
    assert [(one.code, one.columns) for one in report.warnings] == [("names", ("serial",))]
    assert report.leave_out == ("serial",)


def test_numbers_of_rows_are_left_out(rng: np.random.Generator) -> None:
    X, y = table(rng)
    named = pd.DataFrame({"no": np.arange(500), "x": X[:, 0], "code": rng.permutation(500)})
    report = rds.check(named, y)
    assert report.leave_out == ("no", "code")
    assert codes(report) == {"row-id"}


# Order in time.


def log(rng: np.random.Generator) -> tuple[Any, Any]:
    """Twelve recordings of ten seconds; the clock starts again with each."""
    walks = [np.cumsum(rng.normal(size=(100, 2)), axis=0) for _ in range(12)]
    columns = np.column_stack([np.tile(np.arange(100) / 10, 12), np.concatenate(walks)])
    return columns, np.repeat(list("abcd") * 3, 100)


def test_a_clock_that_starts_again_is_found_by_its_name(rng: np.random.Generator) -> None:
    columns, label = log(rng)
    report = rds.check(pd.DataFrame(columns, columns=["seconds", "ax", "ay"]), label)
    assert [(one.code, one.columns) for one in report.warnings] == [("time-order", ("seconds",))]
    assert "windows" in report[0].cure


def test_a_clock_that_starts_again_is_found_by_its_steps(rng: np.random.Generator) -> None:
    report = rds.check(*log(rng))
    assert [(one.code, one.columns) for one in report.warnings] == [("time-order", ("0",))]


def test_days_are_no_windows_of_seconds(rng: np.random.Generator) -> None:
    days = np.arange("2012-01-01", "2014-01-01", dtype="datetime64[D]")
    season = 10 * np.sin(2 * np.pi * np.arange(len(days)) / 365)
    X = pl.DataFrame({"date": days, "low": season + rng.normal(size=len(days))})
    report = rds.check(X, season + 5 + rng.normal(size=len(days)))
    assert codes(report, "warning") == {"time-order"}
    assert "Cut windows" not in report[0].cure
    assert "chronological" in report[0].cure
    assert "lags" in report[0].cure


@pytest.mark.parametrize("kind", ["text", "polars", "pandas"])
def test_dates_are_clocks_however_they_are_stored(rng: np.random.Generator, kind: str) -> None:
    hours = np.arange("2020-01-01", "2020-02-01", dtype="datetime64[h]")
    walk = np.cumsum(rng.normal(size=len(hours)))
    dates = {
        "text": lambda: pd.Series([str(one) for one in hours]),
        "polars": lambda: pl.Series(hours.astype("datetime64[us]")),
        "pandas": lambda: pd.Series(hours.astype("datetime64[ns]")),
    }[kind]()
    columns = {"when": dates, "x": walk + rng.normal(size=len(hours))}
    X = pl.DataFrame(columns) if kind == "polars" else pd.DataFrame(columns)
    [found] = [one for one in rds.check(X, walk) if one.code == "time-order"]
    assert found.columns == ("when",)
    assert "days or hours before" in found.cure


def test_names_of_months_are_no_entities(rng: np.random.Generator) -> None:
    month = rng.integers(0, 12, 800)
    names = np.array(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    )[month]
    X = pd.DataFrame({"x": rng.normal(size=800), "month": names})
    y = X["x"] + 3 * np.sin(2 * np.pi * month / 12) + 0.3 * rng.normal(size=800)
    assert codes(rds.check(X, y)) == set()


def test_years_of_several_rows_are_a_clock_and_no_entities(rng: np.random.Generator) -> None:
    walk = np.cumsum(rng.normal(size=(200, 3)), axis=0)
    X = pd.DataFrame({"year": 1970 + np.arange(200) // 4, "a": walk[:, 0], "b": walk[:, 1]})
    report = rds.check(X, walk[:, 2])
    assert "time-order" in codes(report)
    assert "entities" not in codes(report)
    assert report.time_column == "year"


def test_a_time_of_independent_rows_is_no_order(rng: np.random.Generator) -> None:
    X, y = table(rng)
    named = pd.DataFrame({"time": np.cumsum(rng.exponential(size=500)), "a": X[:, 0]})
    assert codes(rds.check(named, y)) == set()


# The target, the groups and the size.


def test_a_constant_target_is_an_error(rng: np.random.Generator) -> None:
    X, _ = table(rng)
    assert codes(rds.check(X, np.ones(500)), "error") == {"constant-target"}
    assert codes(rds.check(X, ["a"] * 500), "error") == {"constant-target"}


def test_a_target_of_few_values_may_be_classes(rng: np.random.Generator) -> None:
    X, _ = table(rng)
    y = rng.integers(0, 3, 500)
    assert codes(rds.check(X, y.astype(float))) == {"discrete-target"}
    assert codes(rds.check(X, y, task="regression")) == {"discrete-target"}
    assert codes(rds.check(X, y)) == set()


def test_classes_of_two_rows_and_of_one_in_a_hundred(rng: np.random.Generator) -> None:
    X, _ = table(rng, 2000)
    y = np.zeros(2000, dtype=int)
    y[[7, 900]] = 1
    assert codes(rds.check(X, y), "warning") == {"rare-class"}
    y[:11] = 1
    report = rds.check(X, y)
    assert (codes(report, "warning"), codes(report)) == (set(), {"imbalance"})


@pytest.mark.parametrize(
    ("rows", "severity"), [(9, "error"), (12, "warning"), (59, "warning"), (60, None)]
)
def test_few_rows(rng: np.random.Generator, rows: int, severity: str | None) -> None:
    X, y = table(rng, rows, 3)
    assert [one.severity for one in rds.check(X, y)] == ([] if severity is None else [severity])


def test_more_inputs_than_rows(rng: np.random.Generator) -> None:
    X, y = table(rng, 60, 100)
    assert codes(rds.check(X, y)) == {"many-inputs"}


def test_groups_that_cannot_be_divided(rng: np.random.Generator) -> None:
    X, y = table(rng)
    group, label = np.repeat(np.arange(10), 50), (y > 1).astype(int)
    assert codes(rds.check(X, y, groups=np.zeros(500))) == {"one-group"}
    assert codes(rds.check(X, (group == 3).astype(int), groups=group), "warning") == {
        "class-in-one-group"
    }
    assert codes(rds.check(X, group % 3, groups=group)) == {"groups-of-one-class"}
    assert codes(rds.check(X, label, groups=group)) == set()


@pytest.mark.parametrize(("count", "few"), [(2, True), (7, True), (8, False)])
def test_few_groups(rng: np.random.Generator, count: int, few: bool) -> None:
    X, y = table(rng)
    found = rds.check(X, y, groups=np.arange(500) % count).findings
    assert [(one.code, one.severity) for one in found] == [("few-groups", "info")] * few
    if few:
        assert found[0].message == (
            f"{count} groups are few: coverage and metrics for new groups rest on {count} draws of "
            "a group, however many rows there are"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", rds.DataWarning)  # it is good to know, and no more
        model = rds.RDeepSenseRegressor(effort="quick", epochs=1, random_state=0, verbose=False)
        model.fit(X, y, groups=np.arange(500) % count)
    assert [one.code for one in model.findings_] == ["few-groups"] * few


def test_given_groups_end_the_search_for_groups(rng: np.random.Generator) -> None:
    situation = np.repeat(np.arange(60), 20)
    X = rng.normal(size=(60, 3))[situation] + 1e-4 * rng.normal(size=(1200, 3))
    report = rds.check(X, rng.normal(size=1200), groups=situation)
    assert (list(report), report.groups) == ([], None)


def test_columns_beyond_single_precision(rng: np.random.Generator) -> None:
    X, y = table(rng, 800, 3)
    report = rds.check(X * [30, 1e-5, 1] + [1.7e9, 273.15, 0], y)
    assert [(one.code, one.severity, one.columns) for one in report] == [
        ("precision", "info", ("0", "1"))
    ]


# The report.


def test_the_report_is_a_sequence_that_json_can_hold(rng: np.random.Generator) -> None:
    X, y = table(rng)
    report = rds.check(pd.DataFrame({"a": X[:, 0], "b": y, "no": np.arange(500)}), y)
    assert len(report) == 2
    assert [*report] == [report[0], report[1]] == list(report[:2])
    value = json.loads(json.dumps(report.to_json()))
    assert [one["code"] for one in value["findings"]] == ["row-id", "target-copy"]
    assert value["leave_out"] == ["no"]
    assert str(report).count("\n") == 1
    assert str(report).startswith("warning (row-id): column 'no'")


def test_the_most_severe_finding_comes_first(rng: np.random.Generator) -> None:
    X, _ = table(rng, 12)
    assert [one.severity for one in rds.check(X, np.ones(12))] == ["error", "warning"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "list", "float32"])
def test_every_kind_of_table_has_the_same_findings(rng: np.random.Generator, kind: str) -> None:
    X, y = table(rng, 200, 2)
    X = np.column_stack([X, y])
    made = {
        "pandas": lambda: pd.DataFrame(X, columns=["0", "1", "2"]),
        "polars": lambda: pl.DataFrame(X, schema=["0", "1", "2"]),
        "list": X.tolist,
        "float32": lambda: X.astype(np.float32),
    }[kind]()
    assert [one.columns for one in rds.check(made, y)] == [("2",)]


def test_missing_values_hide_nothing(rng: np.random.Generator) -> None:
    X, y = table(rng, 400, 3)
    X = np.column_stack([X, y])
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    assert codes(rds.check(X, y), "warning") == {"target-copy"}


@pytest.mark.parametrize("size", [1e-300, 1e200, 1e300])
def test_any_size_of_number_is_taken(rng: np.random.Generator, size: float) -> None:
    X, y = table(rng, 400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rds.check(X * size, y * size)


def test_windows_are_checked_for_their_target(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 20, 3))
    assert codes(rds.check(X, rng.normal(size=40))) == {"few-rows"}


def test_wrong_arguments_are_named(rng: np.random.Generator) -> None:
    X, y = table(rng)
    with pytest.raises(InputError, match="y has 499 rows, X has 500"):
        rds.check(X, y[1:])
    with pytest.raises(InputError, match="groups has 3 rows"):
        rds.check(X, y, groups=[1, 2, 3])
    with pytest.raises(InputError, match="task = 'classify'; accepted"):
        rds.check(X, y, task="classify")  # type: ignore[arg-type]


# Ordinary tables.


@pytest.mark.parametrize("name", ["diabetes", "wine", "breast_cancer", "iris", "digits"])
def test_ordinary_tables_raise_no_warning(name: str) -> None:
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    assert codes(rds.check(X, y)) == set()


@pytest.mark.parametrize(
    "name",
    ["bostonHousing", "concrete", "energy", "power-plant", "wine-quality-red", "yacht"],
)
def test_uci_tables_raise_no_warning(data_dir: Path, name: str) -> None:
    held = np.load(data_dir / "uci" / f"{name}.npz")
    assert codes(rds.check(held["x"], held["y"]), "warning") == set()


def test_a_design_and_a_time_series(data_dir: Path) -> None:
    airfoil = pl.read_parquet(data_dir / "outside" / "airfoil.parquet")
    assert codes(rds.check(airfoil.drop("target"), airfoil["target"])) == set()
    bikes = pl.read_parquet(data_dir / "outside" / "bike_hour.parquet")
    report = rds.check(bikes.drop("cnt"), bikes["cnt"])
    assert codes(report, "warning") == {"row-id", "time-order"}


def windowed(rng: np.random.Generator, recordings: int, samples: int) -> tuple[Any, Any]:
    """Windows of 20 samples, 5 apart, and the recording of each."""
    found, number = [], []
    for k in range(recordings):
        signal = rng.normal(size=(samples, 2))
        starts = range(0, samples - 19, 5)
        found += [signal[at : at + 20] for at in starts]
        number += [k] * len(starts)
    return np.stack(found), np.array(number)


def test_windows_that_share_samples_are_of_one_recording(rng: np.random.Generator) -> None:
    X, recording = windowed(rng, 8, 200)
    report = rds.check(X, rng.normal(size=len(X)))
    assert codes(report) == {"overlapping-windows"}
    assert same_partition(report.groups, recording)
    assert report.kept is not None
    assert report.kept.all()
    assert codes(rds.check(X, rng.normal(size=len(X)), groups=recording)) == set()
    assert codes(rds.check(X[::4], rng.normal(size=len(X[::4])))) == set()
    assert codes(rds.check(np.zeros((80, 20, 2)), rng.normal(size=80))) == set()


def test_one_long_recording_is_divided_where_no_sample_is_shared(rng: np.random.Generator) -> None:
    X, _ = windowed(rng, 1, 1_000)
    report = rds.check(X, rng.normal(size=len(X)))
    assert report.groups is not None
    assert report.kept is not None
    assert len(np.unique(report.groups)) == 10
    assert (~report.kept).sum() == 9 * 3
    for one, other in zip(range(9), range(1, 10), strict=True):
        kept = np.flatnonzero(report.kept)
        last = max(kept[report.groups[kept] == one])
        assert last * 5 + 20 <= 5 * min(kept[report.groups[kept] == other])
