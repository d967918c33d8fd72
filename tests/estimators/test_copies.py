"""Copies of rows bring nothing new: a model of them is the model of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds


def table(seed: int | np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=rows)


X, Y = table(0, 30)
MANY = np.tile(np.arange(30), 50)
FIT: dict[str, Any] = {"hidden": (8,), "random_state": 0, "verbose": False}
METHODS = [
    rds.RDeepSenseRegressor(epochs=20, **FIT, effort="quick"),
    rds.RDeepSenseRegressor(alpha="auto", epochs=20, **FIT, drop_prob=0.05, likelihood="gaussian"),
    rds.MCDropRegressor(epochs=20, **FIT),
    rds.SSPRegressor(epochs=20, **FIT),
]


def said(model: Any) -> np.ndarray:
    return np.array(model.predict(X, return_std=True))


@pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
def test_copies_and_weights_give_the_model_of_the_rows(model: Any) -> None:
    once = said(model.fit(X, Y))
    # But for the last bits of a weighted mean.
    np.testing.assert_allclose(said(model.fit(X[MANY], Y[MANY])), once, rtol=1e-4, atol=1e-4)
    weighted = said(model.fit(X, Y, sample_weight=np.full(30, 50.0)))
    np.testing.assert_allclose(weighted, once, rtol=1e-4, atol=1e-4)


def test_intervals_hold_new_rows_as_they_do_without_copies(rng: np.random.Generator) -> None:
    new, truth = table(rng, 2_000)
    model = rds.RDeepSenseRegressor(epochs=300, **FIT, effort="quick")
    coverage = model.fit(X[MANY], Y[MANY]).evaluate(new, truth)["coverage_90"]
    assert coverage == pytest.approx(model.fit(X, Y).evaluate(new, truth)["coverage_90"], abs=0.01)
    assert coverage > 0.5


def test_copies_that_validate_shrink_no_calibration(rng: np.random.Generator) -> None:
    other = rng.normal(size=(20, 3))
    pair = (other, other[:, 0])
    model = rds.RDeepSenseRegressor(epochs=20, **FIT, effort="quick")
    once = model.fit(X, Y, validation=pair).fitted_.calibration
    many = np.tile(np.arange(20), 50)
    again = model.fit(X, Y, validation=(pair[0][many], pair[1][many])).fitted_
    assert again.calibration == once
    assert again.training.validation_rows == 20


def test_copies_in_files(tmp_path: Path) -> None:
    table = pl.DataFrame(X[MANY], schema=["a", "b", "c"]).with_columns(y=Y[MANY])
    table.write_parquet(tmp_path / "t.parquet", row_group_size=100)
    model = rds.RDeepSenseRegressor(epochs=2, **FIT, effort="quick").fit(
        tmp_path / "t.parquet", "y"
    )
    validation = model.fitted_.training.validation_rows
    assert validation < 30
    assert model.fitted_.training.rows == 1_500 - 50 * validation
