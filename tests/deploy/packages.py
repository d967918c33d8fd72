"""Packages of small models: a table of numbers, a table of classes, windows of a sensor log."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import rdeepsense as rds
from rdeepsense.networks import DeepSense

FIT: dict[str, Any] = {"random_state": 0, "verbose": False, "effort": "quick", "device": "cpu"}
RATE = 50.0
SENSORS = {"accelerometer": ["ax", "ay", "az"], "gyroscope": ["gx", "gy", "gz"]}


def _table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal((5, 100, 0), (1, 30, 0.01), (300, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=300)


def _log() -> dict[str, Any]:
    """Six people who rest and walk; walking shakes, and tilts the phone."""
    rng, rows = np.random.default_rng(0), 3_000
    walks = np.arange(rows) // 250 % 2 == 1
    log: dict[str, Any] = {"t": np.arange(rows) / RATE, "user": np.repeat(np.arange(6), 500)}
    for k, name in enumerate(["ax", "ay", "az", "gx", "gy", "gz"]):
        log[name] = (k == 2) * 9.81 + np.where(walks, 1.5, 0.2) * rng.normal(size=rows)
    log["ax"] += 2.0 * walks
    log["activity"] = np.where(walks, "walking", "resting")
    return log


@cache
def model(name: str) -> Any:
    """Fit one of "tank" (numbers), "level" (classes), "gait" (windows), "steps" (the same arrays)."""
    if name in ("gait", "steps"):
        by: dict[str, Any] = {"by": ["user"], "label": "activity"}
        w = rds.windows(_log(), time="t", sensors=SENSORS, window="1s", hop="0.5s", rate=RATE, **by)
        network = DeepSense((3, 3), interval=10, filters=6, hidden=9)
        X = w if name == "gait" else w[:]  # an array does not say at what rate it was taken
        return rds.RDeepSenseClassifier(network=network, epochs=12, **FIT).fit(X, w.y)
    X, y = _table()
    if name == "level":
        labels = np.where(y > 5, "high", "low")
        return rds.RDeepSenseClassifier(hidden=(8, 8), epochs=3, **FIT).fit(X, labels)
    return rds.RDeepSenseRegressor(hidden=(8, 8), epochs=3, **FIT).fit(X, y)


def package(name: str, folder: Path, dtype: str = "float32") -> Any:
    """Export one of the models; returns the report."""
    return rds.export(model(name), folder, to="package", name=name, dtype=dtype, max_nll_change=1.0)
