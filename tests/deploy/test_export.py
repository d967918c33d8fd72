"""`rdeepsense.export`: every format by one signature, and what each of them does not take."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import rdeepsense as rds
from rdeepsense.deploy import load
from rdeepsense.deploy.c.export import C99Report
from rdeepsense.deploy.onnx.export import OnnxReport
from rdeepsense.deploy.quality import ExportReport
from rdeepsense.errors import InputError

FIT: dict[str, Any] = {"hidden": (8, 8), "epochs": 3, "random_state": 0, "verbose": False}


@pytest.fixture(scope="module")
def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal((5, 100, 0), (1, 30, 0.01), (300, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=300)


@pytest.fixture(scope="module")
def regressor(table: tuple[Any, Any]) -> Any:
    return rds.RDeepSenseRegressor(**FIT, effort="quick").fit(*table)


@pytest.fixture(scope="module")
def classifier(table: tuple[Any, Any]) -> Any:
    X, y = table
    return rds.RDeepSenseClassifier(**FIT, effort="quick").fit(X, np.where(y > 5, "high", "low"))


def test_folded_is_the_default(regressor: Any, table: tuple[Any, Any], tmp_path: Path) -> None:
    report = rds.export(regressor, tmp_path / "m")
    assert report == ExportReport("folded", tmp_path / "m", None)
    assert json.loads(json.dumps(report.to_json()))["to"] == "folded"
    mean, std = load(tmp_path / "m").predict(table[0], return_std=True)
    wanted = regressor.predict(table[0], return_std=True)
    np.testing.assert_allclose((mean, std), wanted, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_c99(dtype: str, regressor: Any, tmp_path: Path) -> None:
    report = rds.export(
        regressor, str(tmp_path / "m"), to="c99", dtype=dtype, name="gait", max_nll_change=1.0
    )
    assert isinstance(report, C99Report)
    assert (report.name, report.dtype, report.path) == ("gait", dtype, tmp_path / "m")
    assert json.loads((tmp_path / "m/report.json").read_text()) == report.to_json()
    assert report.quality is not None
    assert report.quality.rows_from == "model file"
    assert report.multiply_adds == 3 * 8 + 8 * 8 + 8 * 2


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_onnx(dtype: str, regressor: Any, table: tuple[Any, Any], tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    report = rds.export(regressor, path, to="onnx", dtype=dtype, rows=table, max_nll_change=1.0)
    assert isinstance(report, OnnxReport)
    assert report.quality is not None
    assert report.quality.rows_from == "rows given"
    assert report.quality.rows == (150 if dtype == "int8" else 300)
    assert report.bytes == path.stat().st_size
    assert list(report.to_json()) == ["opset", "bytes", "agreement", "quality"]


@pytest.mark.parametrize("to", ["folded", "c99", "onnx"])
def test_epistemic(to: str, regressor: Any, tmp_path: Path) -> None:
    rds.export(regressor, tmp_path / "m", to=to, epistemic="laplace", **_loose(to))
    with pytest.raises(InputError, match="epistemic='delta' cannot be exported; accepted: 'lap"):
        rds.export(regressor, tmp_path / "other", to=to, epistemic="delta")


def _loose(to: str) -> dict[str, Any]:
    return {} if to == "folded" else {"max_nll_change": 1.0}


def test_classes_are_given_by_their_labels(
    classifier: Any, table: tuple[Any, Any], tmp_path: Path
) -> None:
    X, y = table
    labels = np.where(y > 5, "high", "low")
    rows = (pd.DataFrame(X), labels)
    report = rds.export(classifier, tmp_path / "m", to="c99", rows=rows)
    assert report.quality is not None
    found = np.mean(classifier.predict(X) == labels)
    assert report.quality.before["accuracy"] == pytest.approx(found)
    with pytest.raises(InputError, match="rows= has the class 'huge', .* known: high, low"):
        rds.export(classifier, tmp_path / "n", to="c99", rows=(X, np.full(len(X), "huge")))
    assert not (tmp_path / "n").exists()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"to": "tflite"}, "to='tflite' is unknown; accepted: 'folded', 'c99', 'onnx'"),
    ({"dtype": "int8"}, "dtype='int8' is not for to='folded'; accepted: 'float32'"),
    ({"to": "c99", "dtype": "int4"}, "dtype='int4' is unknown; accepted: 'float32', 'float16', "),
    ({"to": "onnx", "dtype": "float16"}, "dtype='float16' is not for to='onnx'; accepted: 'flo"),
    ({"to": "onnx", "name": "gait"}, "name='gait' is not for to='onnx'; accepted there: dtype=, r"),
    (
        {"max_nll_change": 0.1},
        "max_nll_change=0.1 is not for to='folded'; accepted there: dtype=, ",
    ),
    ({"fine_tune": True}, "fine_tune=True is not for to='folded'"),
    ({"rows": ([[1, 2, 3]], [1])}, "rows= is not for to='folded'; accepted there: dtype=, epist"),
    ({"to": "c99", "fine_tune": True}, "fine_tune=True is for dtype='int8'; float32 is exported"),
    ({"to": "c99", "reject": 1.5}, "reject=1.5; accepted: a fitted RejectOption, or the share"),
    ({"to": "c99", "rows": "rows.csv"}, r"rows= must be a pair \(X, y\)"),
    ({"to": "c99", "rows": ([[1, 2]], [1])}, r"rows= has X of shape \(1, 2\) .* takes \(rows, 3\)"),
    ({"to": "c99", "rows": ([[1, 2, 3]], [[1]])}, r"rows= has y of shape \(1, 1\)"),
    ({"to": "c99", "rows": ([[1, 2, 3]], [1, 2])}, r"rows= has X of shape \(1, 3\) and y of sh"),
    (
        {"to": "c99", "dtype": "int8", "epistemic": "laplace"},
        "dtype='int8' cannot be exported with epistemic='laplace'",
    ),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refusals(options: dict[str, Any], message: str, regressor: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        rds.export(regressor, tmp_path / "m", **options)
    assert list(tmp_path.iterdir()) == []


def test_models_that_cannot_be_exported(table: tuple[Any, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="model is a str; accepted: an estimator"):
        rds.export("model.safetensors", tmp_path / "m")  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        rds.export(rds.RDeepSenseRegressor(effort="quick"), tmp_path / "m")
    ensemble = rds.SSPRegressor(members=2, epochs=1, verbose=False).fit(*table)
    for to in ("folded", "c99", "onnx"):
        with pytest.raises(InputError, match="a SSPRegressor takes more than one pass"):
            rds.export(ensemble, tmp_path / "m", to=to)
    assert list(tmp_path.iterdir()) == []


def test_tables_in_another_order_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["flow", "age"])
    y = rng.normal(size=80)
    model = rds.RDeepSenseRegressor(**FIT, effort="quick").fit(X, y)
    rds.export(model, tmp_path / "m", to="onnx", rows=(X, y), max_nll_change=1.0)
    with pytest.raises(InputError, match="rows= has the columns age, flow; .* on flow, age"):
        rds.export(model, tmp_path / "n", to="onnx", rows=(X[["age", "flow"]], y))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_profile(regressor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = ["folded", "c-float32", "torch"]
    before = regressor.predict(regressor.fitted_.kept_rows[0])
    report = rds.profile(regressor, candidates=names, rounds=1, device="Cortex-M4")
    assert [one.name for one in report.candidates] == names
    assert (report.layers, report.rounds) == ((3, 8, 8, 2), 1)
    assert report.energy.startswith("estimated for Cortex-M4")
    found = json.loads(json.dumps(report.to_json()))
    assert list(found) == ["layers", "machine", "rounds", "energy", "forms"]
    assert all(form["microseconds"] > 0 for form in found["forms"])
    assert np.array_equal(regressor.predict(regressor.fitted_.kept_rows[0]), before)
    for options, message in (
        ({"candidates": ["tpu"]}, "candidates='tpu' is unknown; accepted: torch"),
        ({"rounds": 0}, "rounds=0 must be 1 or more"),
        ({"device": "toaster"}, "device='toaster' is unknown"),
    ):
        with pytest.raises(InputError, match=message):
            rds.profile(regressor, **options)  # type: ignore[arg-type]
