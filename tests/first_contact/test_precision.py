"""Columns with a large offset: centered in float64, refused by name where float32 is read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rdeepsense as rds
from rdeepsense.data.scaling import Scaler

OFFSETS = [(1.7e9, 30.0), (1e9, 0.05), (273.15, 1e-5)]
QUICK: dict[str, Any] = {
    "effort": "quick",
    "epochs": 5,
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
}


def table(rng: np.random.Generator, rows: int = 300) -> tuple[Any, Any]:
    X = rng.normal(size=(rows, 2))
    return X, 2 * X[:, 0] + 0.3 * rng.normal(size=rows)


def moved(X: Any, centre: float, spread: float) -> Any:
    moved = X.copy()
    moved[:, 0] = centre + spread * moved[:, 0]
    return moved


@pytest.mark.parametrize(("centre", "spread"), OFFSETS)
def test_an_offset_changes_no_prediction(
    centre: float, spread: float, rng: np.random.Generator, tmp_path: Path
) -> None:
    X, y = table(rng)
    Z = moved(X, centre, spread)
    plain = rds.RDeepSenseRegressor(**QUICK).fit(X, y)
    model = rds.RDeepSenseRegressor(**QUICK).fit(Z, y)
    assert model.score(Z, y) == pytest.approx(plain.score(X, y), abs=0.02)
    rds.export(model, tmp_path / "model.folded")
    deployed = rds.deploy.load(tmp_path / "model.folded")
    np.testing.assert_allclose(deployed.predict(Z), model.predict(Z), rtol=0, atol=1e-9)
    model.save(tmp_path / "model.safetensors")
    loaded = rds.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(Z), model.predict(Z))


def test_ranges_are_as_fine_as_the_column(
    fitted: Callable[..., Any], rng: np.random.Generator
) -> None:
    X, y = table(rng)
    Z = moved(X, *OFFSETS[1])
    model = fitted(rds.RDeepSenseRegressor(**QUICK), Z, y)
    assert not model.status(Z).any()
    far = moved(np.full((1, 2), 40.0), *OFFSETS[1])
    assert model.status(far)[0] == rds.Status.OUT_OF_RANGE


@pytest.mark.parametrize("to", ["c99", "onnx", "package", "web"])
def test_forms_that_read_float32_refuse_the_column_by_name(
    to: str, fitted: Callable[..., Any], tmp_path: Path
) -> None:
    X, y = table(np.random.default_rng(0))
    frame = pl.DataFrame(moved(X, *OFFSETS[0]), schema=["time", "b"])
    model = fitted(rds.RDeepSenseRegressor(**QUICK), frame.to_pandas(), y)
    with pytest.raises(rds.InputError, match=r"float32.*input 'time' apart \(1.7e\+09 ± 3"):
        rds.export(model, tmp_path / "out", to=to)
    assert not (tmp_path / "out").exists()


def test_rows_in_float32_are_refused_by_name(fitted: Callable[..., Any], tmp_path: Path) -> None:
    X, y = table(np.random.default_rng(0))
    frame = pl.DataFrame(moved(X, *OFFSETS[0]), schema=["time", "b"])
    model = fitted(rds.RDeepSenseRegressor(**QUICK), frame.to_pandas(), y)
    narrow = frame.to_pandas().astype(np.float32)
    with pytest.raises(rds.InputError, match="column 'time' apart"):
        model.predict(narrow)
    rds.export(model, tmp_path / "model.folded")
    with pytest.raises(rds.InputError, match="column 'time' apart"):
        rds.deploy.load(tmp_path / "model.folded").predict(narrow)
    with pytest.raises(rds.InputError, match="C computes in float32.*input 'time'"):
        rds.deploy.load(tmp_path / "model.folded", compile=True)


def test_columns_lost_in_float32_are_named_at_fit(rng: np.random.Generator) -> None:
    X, y = table(rng)
    frame = pl.DataFrame(moved(X, *OFFSETS[0]).astype(np.float32), schema=["time", "b"])
    with pytest.warns(rds.ColumnWarning, match="column 'time': float32 does not tell"):
        rds.RDeepSenseRegressor(**QUICK).fit(frame.to_pandas(), y)


def test_an_export_warns_of_an_input_that_float32_makes_noisy(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    X, y = table(rng)
    model = rds.RDeepSenseRegressor(**QUICK).fit(moved(X, 1e7, 3.0), y)
    with pytest.warns(rds.ColumnWarning, match="rounds input 0"):
        rds.export(model, tmp_path / "m.onnx", to="onnx", max_nll_change=10)


def test_a_target_that_float32_cannot_tell_apart_is_refused(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    X, y = table(rng)
    model = rds.RDeepSenseRegressor(**QUICK, keep_rows=0).fit(X, 1.7e9 + y)
    with pytest.raises(rds.InputError, match="target 0"):
        rds.export(model, tmp_path / "m.onnx", to="onnx")


def test_parquet_folders_are_centered_in_float64(rng: np.random.Generator, tmp_path: Path) -> None:
    X, y = table(rng, 600)
    Z = moved(X, *OFFSETS[1])
    frame = pl.DataFrame({"a": Z[:, 0], "b": Z[:, 1].astype(np.float32), "y": y})
    (tmp_path / "folder").mkdir()
    frame[:300].write_parquet(tmp_path / "folder" / "0.parquet")
    frame[300:].write_parquet(tmp_path / "folder" / "1.parquet")
    model = rds.RDeepSenseRegressor(**{**QUICK, "epochs": 20}).fit(tmp_path / "folder", "y")
    assert model.score(frame.select("a", "b").to_pandas(), y) > 0.9


def log(rng: np.random.Generator, offset: float) -> dict[str, Any]:
    time = np.concatenate([np.arange(300) / 50 + 100 * k for k in range(8)])
    who = np.repeat(np.arange(8), 300)
    active = who % 2
    pressure = offset + 0.05 * rng.normal(size=2400) * (1 + 3 * active)
    return {"t": time, "p": pressure, "who": who, "active": active}


def test_windows_of_a_log_keep_the_samples_apart(rng: np.random.Generator, tmp_path: Path) -> None:
    table = log(rng, 1e9)
    options: dict[str, Any] = {"sensors": {"baro": ["p"]}, "window": "1s", "hop": "0.5s"}
    options["by"] = "who"
    windows = rds.windows(table, time="t", label="active", **options)
    assert windows.dtype == np.float64
    assert "float32 does not tell those of p apart" in str(windows.report)
    small = rds.windows({**table, "p": table["p"] - 1e9}, time="t", **options)
    assert small.dtype == np.float32
    np.testing.assert_allclose(windows[:] - 1e9, small[:], atol=1e-6)

    network = rds.networks.DeepSense(sensors=(1,), interval=10)
    model = rds.RDeepSenseClassifier(
        network=network, alpha=0.5, drop_prob=0.05, epochs=12, random_state=0, verbose=False
    ).fit(windows, windows.y, groups=windows.groups["who"])
    assert model.score(windows, windows.y) > 0.9
    model.save(tmp_path / "model.safetensors")
    assert rds.load(tmp_path / "model.safetensors").windows(table).dtype == np.float64

    rds.export(model, tmp_path / "model.folded")
    stream = rds.Stream(str(tmp_path / "model.folded"))
    first = [stream.push(t, [p]) for t, p in zip(table["t"][:60], table["p"][:60], strict=True)]
    decision = next(d for found in first for d in found if not d.status)
    np.testing.assert_allclose(decision.probs, model.predict_proba(windows[:1])[0], atol=1e-9)


def test_ordinary_columns_and_constants_are_scaled_as_before(rng: np.random.Generator) -> None:
    values = np.column_stack([rng.normal(size=200), np.full(200, 1e9 / 3), 0.1 * np.ones(200)])
    scaler = Scaler.standard(values, np.arange(200), np.ones(200))
    assert scaler.flat == (1, 2)
    assert scaler.double_columns == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error", rds.ColumnWarning)
        rds.RDeepSenseRegressor(**QUICK).fit(values, values[:, 0] + rng.normal(size=200))


@pytest.mark.parametrize("kind", ["uint64", "whole numbers of Python"])
def test_whole_numbers_that_float64_makes_equal_are_named(
    rng: np.random.Generator, kind: str
) -> None:
    X, y = table(rng)
    counts = np.arange(len(X)) % 97
    if kind == "uint64":
        values: object = counts.astype(np.uint64) + np.uint64(2**63)
    else:
        values = [10**30 + int(k) for k in counts]
    frame = pd.DataFrame({"count": values, "b": X[:, 1]})
    with pytest.warns(rds.ColumnWarning, match="column 'count': some whole numbers beyond 2"):
        rds.RDeepSenseRegressor(**QUICK).fit(frame, y)


def test_nanoseconds_are_told_apart_as_float64(rng: np.random.Generator) -> None:
    X, y = table(rng)
    nanoseconds = 1_700_000_000_000_000_000 + 1_000_000 * np.arange(len(X))
    frame = pd.DataFrame({"time": nanoseconds, "b": X[:, 1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error", rds.ColumnWarning)
        rds.RDeepSenseRegressor(**QUICK, check=False).fit(frame, y)
