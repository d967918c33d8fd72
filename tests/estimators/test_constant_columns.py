"""Constant columns: a row is the same row in float32 and float64, whichever constants it holds.

Random constants of two decimals, several of them in one table, in every method, in streamed fits
and in folded files. `RDEEPSENSE_LONG=1` tries a thousand of them at six numbers of rows.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense import deploy

LONG = bool(os.environ.get("RDEEPSENSE_LONG"))
ROWS = (100, 500, 1_000, 2_000, 5_000, 20_000) if LONG else (100, 1_000)
TABLES, TOGETHER = (20, 50) if LONG else (1, 20)
NETWORK: dict[str, Any] = {"hidden": (8,), "random_state": 0, "verbose": False}
METHODS: dict[str, Any] = {
    "RDeepSense": lambda steps: rds.RDeepSenseRegressor(**NETWORK, **steps, effort="quick"),
    "MCDrop": lambda steps: rds.MCDropRegressor(**NETWORK, **steps),
    "SSP": lambda steps: rds.SSPRegressor(**NETWORK, **steps),
    "GP": lambda steps: rds.GPRegressor(
        method="variational", inducing=16, steps=20, random_state=0, verbose=False
    ),
}
MOST = 1e-4  # of a predicted standard deviation


def tables(rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return tables of two inputs that vary among constants of many sizes."""
    rng = np.random.default_rng(rows)
    made = []
    for _ in range(TABLES):
        constants = np.round(rng.normal(size=TOGETHER) * 10.0 ** rng.integers(0, 4, TOGETHER), 2)
        varying = rng.normal(size=(rows, 2)).astype(np.float32).astype(np.float64)
        y = varying[:, 0] + 0.3 * rng.normal(size=rows)
        made.append((np.column_stack([varying, np.tile(constants, (rows, 1))]), y))
    return made


def apart(model: Any, X: np.ndarray) -> float:
    """Return how far float32 moves a prediction, in predicted standard deviations."""
    some = X[:50]
    (mean, std), (mean32, std32) = (
        model.predict(rows, return_std=True) for rows in (some, some.astype(np.float32))
    )
    return float(np.max((np.abs(mean - mean32) + np.abs(std - std32)) / std))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_the_same_in_both_types(method: str, rows: int, dtype: Any) -> None:
    worst = 0.0
    for X, y in tables(rows):
        steps = {"epochs": 2, "batch_size": max(32, rows // 16)}
        model = METHODS[method](steps).fit(X.astype(dtype), y)
        assert len(model.training_["constant_inputs"]) == TOGETHER
        worst = max(worst, apart(model, X))
        assert np.abs(model.predict(X[:50])).max() < 100
    print(f"{method}, {rows} rows, {np.dtype(dtype)}: {TABLES * TOGETHER} constants, {worst:.1e}")
    assert worst < MOST


@pytest.mark.parametrize("rows", ROWS)
def test_streamed_and_folded(rows: int, tmp_path: Path) -> None:
    worst = {"streamed": 0.0, "folded": 0.0}
    for X, y in tables(rows):
        names = [f"x{k}" for k in range(X.shape[1])]
        path = tmp_path / "t.parquet"
        pl.DataFrame(X, schema=names).with_columns(y=y).write_parquet(path, row_group_size=333)
        steps = {"epochs": 2, "batch_size": max(32, rows // 16)}
        model = METHODS["RDeepSense"](steps).fit(path, "y")
        assert len(model.training_["constant_inputs"]) == TOGETHER
        table, single = (
            pl.DataFrame(X[:50].astype(kind), schema=names) for kind in (np.float64, np.float32)
        )
        (mean, std), (mean32, _) = (model.predict(t, return_std=True) for t in (table, single))
        rds.export(model, tmp_path / "m")
        folded = deploy.load(tmp_path / "m")
        found = [folded.predict(X[:50].astype(kind)) for kind in (np.float64, np.float32)]
        found = [np.asarray(one).ravel() for one in found]
        worst["streamed"] = max(worst["streamed"], float(np.max(np.abs(mean - mean32) / std)))
        for one in found:
            worst["folded"] = max(worst["folded"], float(np.max(np.abs(one - mean) / std)))
    print(f"{rows} rows: {TABLES * TOGETHER} constants, {worst}")
    assert max(worst.values()) < MOST
