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


def _windows(sensors: dict[str, list[str]], label: str, target: str) -> Any:
    cut: dict[str, Any] = {"window": "1s", "hop": "0.5s", "rate": RATE, "by": ["user"]}
    return rds.windows(_log(), time="t", sensors=sensors, label=label, target=target, **cut)


@cache
def model(name: str) -> Any:
    """Fit a model of a table, "tank" (numbers) or "level" (classes), or one of windows.

    "gait" and "steps" are the same classifier, but the latter was given arrays, which do not say at
    what rate they were taken; "pulse" predicts numbers.
    """
    if name == "pulse":
        w = _windows({"gyroscope": ["gx", "gy", "gz"], "skin": ["ay"]}, "ax", "mean")
        small = DeepSense((3, 1), interval=5, filters=4, hidden=6)
        return rds.RDeepSenseRegressor(network=small, epochs=1, **FIT).fit(w, w.y)
    if name in ("gait", "steps"):
        w = _windows(SENSORS, "activity", "majority")
        network = DeepSense((3, 3), interval=5, filters=6, hidden=9)
        given = w if name == "gait" else w[:]
        return rds.RDeepSenseClassifier(network=network, epochs=12, **FIT).fit(given, w.y)
    X, y = _table()
    if name == "level":
        labels = np.where(y > 5, "high", "low")
        return rds.RDeepSenseClassifier(hidden=(8, 8), epochs=3, **FIT).fit(X, labels)
    return rds.RDeepSenseRegressor(hidden=(8, 8), epochs=3, **FIT).fit(X, y)


def package(name: str, folder: Path, dtype: str = "float32", **more: Any) -> Any:
    """Export one of the models; returns the report."""
    options: dict[str, Any] = {"name": name, "dtype": dtype, "max_nll_change": 1.0, **more}
    return rds.export(model(name), folder, to="package", **options)
