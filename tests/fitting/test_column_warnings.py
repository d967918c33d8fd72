"""Columns that a user should look at are named, and what is learnt from them is right."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense import ColumnWarning, InputError


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=300)


X, Y = table()
FIT: dict[str, Any] = {"hidden": (16,), "epochs": 30, "random_state": 0, "verbose": False}


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_inputs_of_any_size_are_learnt_from_and_named(size: float) -> None:
    table = pd.DataFrame(X * [size, 1.0, 1.0], columns=["flow", "b", "c"])
    with pytest.warns(ColumnWarning, match="X, column 'flow': .*multiply .* by a constant") as told:
        model = rds.RDeepSenseRegressor(**FIT, effort="quick").fit(table, Y)
    assert len(told) == 1
    figures = model.evaluate(table, Y)
    assert figures["rmse"] < 0.5
    assert 0.8 < figures["coverage_90"] <= 1
    with pytest.warns(ColumnWarning, match="X, columns 0, 1, 2: "):
        classes = rds.RDeepSenseClassifier(**FIT, effort="quick").fit(X * size, Y > 0)
    assert classes.evaluate(X * size, Y > 0)["accuracy"] > 0.8


@pytest.mark.everyday(3, "slow")
@pytest.mark.parametrize("size", [1e-100, 1e-40, 1e40, 1e100])
@pytest.mark.parametrize("method", [rds.RDeepSenseRegressor, rds.MCDropRegressor])
def test_targets_of_any_size_are_predicted_and_named(method: Any, size: float) -> None:
    with pytest.warns(ColumnWarning, match="y, column 'load': "):
        model = method(**FIT).fit(X, pd.Series(Y * size, name="load"))
    figures = model.evaluate(X, Y * size)
    assert figures["rmse"] < 0.5 * size
    assert 0.8 < figures["coverage_90"] <= 1


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_targets_without_a_variance_are_refused(size: float) -> None:
    for y, said in ((Y * size, "y"), (pd.Series(Y * size, name="load"), "y, column 'load',")):
        with pytest.raises(InputError, match=f"{said} goes from .* multiply it by a constant"):
            rds.RDeepSenseRegressor(**FIT, effort="quick").fit(X, y)


@pytest.mark.parametrize("place", range(0, 300, 60))
def test_a_target_far_out_is_told_of_on_either_side_of_the_split(place: int) -> None:
    y = Y.copy()
    y[place] = 1e12
    light = rds.RDeepSenseRegressor(**FIT, likelihood="gaussian", effort="quick")
    for model in (light, rds.MCDropRegressor(**FIT)):
        with pytest.warns(ColumnWarning, match='y, column 0: .*likelihood="student"'):
            model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rds.RDeepSenseRegressor(likelihood="student", **FIT, effort="quick").fit(X, y)
        rds.RDeepSenseRegressor(**FIT, effort="quick").fit(X, Y)
    assert model.evaluate(np.delete(X, place, 0), np.delete(y, place))["mae"] < 1.0


def test_an_input_far_out_is_told_of_and_a_rare_one_is_not() -> None:
    table = X.copy()
    table[7, 1] = 1e12
    with pytest.warns(ColumnWarning, match="X, column 1: .*mend or clip"):
        rds.RDeepSenseRegressor(**FIT, effort="quick").fit(table, Y)
    table[:, 1] = np.arange(300) == 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rds.RDeepSenseRegressor(**FIT, effort="quick").fit(table, Y)


def test_streamed_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = {"a": X[:, 0], "b": X[:, 1] * 1e40, "y": Y}
    pl.DataFrame(table).write_parquet(path)
    with pytest.warns(ColumnWarning, match="X, column 'b': "):
        rds.RDeepSenseRegressor(**FIT, effort="quick").fit(path, "y")
    for size in (1e-200, 1e200):
        pl.DataFrame({**table, "b": X[:, 1] * size}).write_parquet(path)
        with pytest.raises(InputError, match="column 'b' goes from .*multiply it by a constant"):
            rds.RDeepSenseRegressor(**FIT, effort="quick").fit(path, "y")
        pl.DataFrame({**table, "b": X[:, 1], "y": Y * size}).write_parquet(path)
        with pytest.raises(InputError, match="multiply it by a constant"):
            rds.RDeepSenseRegressor(**FIT, effort="quick").fit(path, "y")
