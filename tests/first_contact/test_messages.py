"""Messages name the column, the value and what was probably meant, in the words of the reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from first_contact.test_live import SETTINGS, rows

import rdeepsense as rds
from rdeepsense.cli import main

Refused = Callable[..., tuple[int, str]]


@pytest.fixture
def refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Refused:
    """Run `rdeepsense ARGS` in a folder with a table; returns the exit code and stderr."""
    monkeypatch.chdir(tmp_path)
    X, y = rows(40)
    pl.DataFrame({"temp": X[:, 0], "TempMin": X[:, 1], "MPG": y}).write_csv("table.csv")

    def call(line: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as exit_:
            main(line.split())
        return int(exit_.value.code or 0), capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("fit table.csv --target MGP", 1, "(did you mean 'MPG'?)"),
        ("fit table.csv --target MPG --ignore tempmin", 1, "(did you mean 'TempMin'?)"),
        ("compare table.csv --target MPG --test-fraction 20", 1, "(did you mean 0.2?)"),
        ("fit table.csv --target MPG --calibrate best", 2, "error: Invalid value for"),
        ("fit table.csv", 2, "error: Missing option '--target'.\nTry 'rdeepsense fit --help'."),
        ("fitt table.csv", 2, "error: No such command 'fitt'"),
    ],
)
def test_errors_of_the_command_line(refused: Refused, line: str, code: int, message: str) -> None:
    found, text = refused(line)
    assert found == code
    assert message in text
    assert text.startswith("error: ")
    assert "Value error" not in text  # the words of pydantic


def test_a_budget_that_is_too_small_is_no_python(refused: Refused) -> None:
    _, text = refused("fit table.csv --target MPG --hidden 64,64 --budget flash=1kB --no-check")
    assert "the budget is too small for" in text
    assert "Budget(" not in text


def test_tables_have_no_blanks_at_the_ends_of_lines(
    refused: Refused, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    X, y = rows(100)
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).write_csv("more.csv")
    with pytest.raises(SystemExit):
        main(["fit", "more.csv", "--target", "y", "--quick", "--epochs", "2", "-o", "m.st"])
    lines = capsys.readouterr().out.splitlines()
    assert any("─" in line for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("name", ["*", "^a.*$"])
def test_names_that_polars_takes_for_patterns_are_refused(refused: Refused, name: str) -> None:
    Path("table.csv").write_text(f"ab,{name},y\n" + "1,2,3\n2,5,7\n" * 20)
    code, text = refused("fit table.csv --target y")
    assert code == 1
    assert f"the column name {name!r} is a pattern" in text


@pytest.mark.parametrize("label", ["sun", 0.0, 3, True])
def test_one_class_is_named_as_it_is_written(label: object) -> None:
    X, _ = rows(40)
    with pytest.raises(rds.InputError, match=rf"one class only \({label!r}\)"):
        rds.RDeepSenseClassifier(**SETTINGS, check=False).fit(X, [label] * 40)


def test_columns_are_named() -> None:
    X, y = rows(40)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(b=np.nan)
    model = rds.RDeepSenseRegressor(**SETTINGS)
    with pytest.raises(rds.InputError, match="column 'b' of X has no value at all"):
        model.fit(frame, y)
    series = pd.Series(y, name="temp")
    series[3] = np.nan
    with pytest.raises(rds.InputError, match="first NaN in row 3, column 'temp';"):
        model.fit(X, series)
    with pytest.raises(rds.InputError, match="first NaN in row 3;"):
        model.fit(X, series.to_numpy())


def test_percentages_in_place_of_shares(fitted: Callable[..., Any]) -> None:
    model = fitted(rds.RDeepSenseRegressor(**SETTINGS), *rows(400))
    for call in (
        lambda: model.predict_interval(rows(5)[0], 90),
        lambda: model.predict_dist(rows(5)[0]).quantile(90),
        lambda: model.live(90),
    ):
        with pytest.raises(rds.InputError, match=r"between 0 and 1 \(did you mean 0\.9\?\)"):
            call()
    with pytest.raises(rds.InputError, match="between 0 and 1$"):
        model.live(2)


@pytest.mark.parametrize("X", [None, "abc", [[1, 2]], [[1, 2, "a"]], np.zeros((2, 4)), [[[]]]])
def test_what_is_no_table_is_refused_by_an_error_of_ours(
    X: Any, fitted: Callable[..., Any]
) -> None:
    model = fitted(rds.RDeepSenseRegressor(**SETTINGS), *rows(400))
    for call in (model.predict, model.status, model.predict_dist):
        with pytest.raises(rds.InputError):
            call(X)


def test_weights_that_are_text() -> None:
    for weight in ("a", ["a"] * 40):
        with pytest.raises(rds.InputError, match="sample_weight"):
            rds.RDeepSenseRegressor(**SETTINGS).fit(*rows(40), sample_weight=weight)
