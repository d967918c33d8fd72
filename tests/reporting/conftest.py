"""One small fit, and five models made of it on purpose; a page of each kind of target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.calibration import Scale
from rdeepsense.reporting.report import ModelReport, report

NAMES = ("temp", "load", "site")


@dataclass
class Rows:
    X: pl.DataFrame
    y: np.ndarray[Any, Any]
    user: pl.Series
    when: pl.Series


def sensor(rows: int, seed: int) -> Rows:
    """y = 20 + 3 temp + 5 at the roof + noise that grows with the load."""
    rng = np.random.default_rng(seed)
    temp, load = rng.normal(size=rows), rng.uniform(0, 1, rows)
    site = rng.choice(["north", "roof", "south"], rows)
    y = 20 + 3 * temp + 5 * (site == "roof") + (0.5 + load) * rng.normal(size=rows)
    start = np.datetime64("2024-03-01", "ms")
    when = pl.Series("when", start + np.arange(rows) * np.timedelta64(600_000, "ms"))
    X = pl.DataFrame({"temp": temp, "load": load, "site": site})
    return Rows(X, y, pl.Series("user", np.arange(rows) % 7), when)


@pytest.fixture(scope="session")
def model() -> Any:
    data = sensor(800, seed=0)
    found = rds.RDeepSenseRegressor(
        effort="quick", hidden=(16,), epochs=40, likelihood="gaussian", random_state=0,
        verbose=False,
    ).fit(data.X, pl.Series("heat", data.y))  # fmt: skip
    return found.describe(target_units=["kW"], feature_units={"temp": "°C"})


@pytest.fixture(scope="session")
def rows() -> Rows:
    return sensor(900, seed=1)


@pytest.fixture(scope="session")
def pages(model: Any, rows: Rows) -> dict[str, ModelReport]:
    """A page of each of the five."""

    def scaled(factor: float) -> Any:
        other = rds.RDeepSenseRegressor(**model.get_params())
        other.__dict__.update(vars(model))
        known = model.fitted_.calibration.factor
        other.fitted_ = replace(model.fitted_, calibration=Scale(known * factor))
        return other

    rng = np.random.default_rng(5)
    learnt = sensor(300, seed=3)
    nothing = rds.RDeepSenseRegressor(
        effort="quick", hidden=(4,), epochs=10, likelihood="gaussian", random_state=0,
        verbose=False,
    ).fit(learnt.X, pl.Series("heat", rng.permutation(learnt.y)))  # fmt: skip
    late = rows.y + np.where(np.arange(len(rows.y)) >= 600, 6.0, 0.0)
    made = {
        "good": (model, rows.y),
        "too wide": (scaled(2.0), rows.y),
        "too narrow": (scaled(0.4), rows.y),
        "useless": (nothing, rows.y),
        "drifting": (model, late),
    }
    return {
        kind: report(one, rows.X, y, groups=rows.user, time=rows.when, title=f"<{kind}>")
        for kind, (one, y) in made.items()
    }


@pytest.fixture(scope="session")
def html(pages: dict[str, ModelReport]) -> dict[str, str]:
    """Two of the pages as text, each drawn once."""
    return {kind: pages[kind].html() for kind in ("good", "drifting")}
