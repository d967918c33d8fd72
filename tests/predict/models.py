"""Small fitted models for the tests of this folder, each fitted once."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import polars as pl

import rdeepsense as rds

ROWS = 200


def table(rows: int = ROWS, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    site = np.array(["north", "south", "east"])[rng.integers(0, 3, rows)]
    return pl.DataFrame({"a": a, "b": b, "site": site})


@functools.cache
def regressor(kind: str = "plain") -> Any:
    """Fit "plain" (a, b), "two" (targets), "texts" (with site), "conformal" or "gaps"."""
    X = table(2 * ROWS)
    y = 3 * X["a"] - X["b"] + 0.3 * np.random.default_rng(1).normal(size=len(X))
    target: Any = pl.Series("heat", y)
    options: dict[str, Any] = {"likelihood": "student"}
    if kind == "two":
        target = pl.DataFrame({"heat": y, "cold": -2 * y + 1})
    elif kind == "conformal":
        options = {"calibrate": "conformal", "likelihood": "gaussian"}
    elif kind == "isotonic":
        options = {"calibrate": "isotonic", "likelihood": "gaussian"}
    elif kind == "gaps":
        X = X.with_columns(pl.when(pl.col("a") > 1).then(None).otherwise(pl.col("a")).alias("a"))
    X = X if kind == "texts" else X.drop("site")
    model = rds.RDeepSenseRegressor(
        hidden=(8,), alpha=0.5, drop_prob=0.05, epochs=3, random_state=0, **options
    )
    return model.fit(X, target).fit_novelty(X)


@functools.cache
def classifier() -> Any:
    X = table(2 * ROWS).drop("site")
    y = np.where(X["a"] > 0.5, "high", np.where(X["a"] > -0.5, "mid", "low"))
    model = rds.RDeepSenseClassifier(
        hidden=(8,), alpha=0.5, drop_prob=0.05, epochs=3, random_state=0
    )
    return model.fit(X, pl.Series("level", y))
