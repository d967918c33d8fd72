"""ONNX with the last hidden layer's numbers as a further output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import rdeepsense as rds
from rdeepsense.errors import InputError

SETTINGS: dict[str, Any] = {
    "effort": "quick",
    "hidden": (16, 12),
    "epochs": 5,
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
}


def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = (100 + 10 * rng.normal(size=(300, 4))).astype(np.float32)
    return X, np.sin(X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("epistemic", [None, "laplace"])
def test_features_are_those_of_the_network(
    classes: bool, epistemic: str | None, tmp_path: Path
) -> None:
    X, y = rows()
    kind: Any = rds.RDeepSenseClassifier if classes else rds.RDeepSenseRegressor
    model = kind(**SETTINGS).fit(X, (y > y.mean()).astype(int) if classes else y)
    path = tmp_path / "model.onnx"
    rds.export(model, path, to="onnx", features=True, epistemic=epistemic)
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {"x": X}), strict=True))
    wanted = model.fitted_.last_hidden(X.astype(np.float64), None)[:, :-1]
    assert found["features"].dtype == np.float32
    assert found["features"].shape == (300, 12)
    assert np.abs(found["features"] - wanted).max() < 1e-5 * np.abs(wanted).max()
    assert (wanted > 0).any()
    rds.export(model, tmp_path / "plain.onnx", to="onnx", epistemic=epistemic)
    plain = onnxruntime.InferenceSession(tmp_path / "plain.onnx")
    for output, values in zip(plain.get_outputs(), plain.run(None, {"x": X}), strict=True):
        assert np.array_equal(found[output.name], values), output.name


def test_what_has_no_features_is_refused(tmp_path: Path) -> None:
    X, y = rows()
    model = rds.RDeepSenseRegressor(**SETTINGS).fit(X, y)
    straight = rds.RDeepSenseRegressor(**{**SETTINGS, "hidden": ()}).fit(X, y)
    for one, options, said in [
        (model, {"to": "onnx", "dtype": "int8"}, "float32"),
        (model, {"to": "c99"}, "is not for"),
        (straight, {"to": "onnx"}, "hidden layer"),
    ]:
        with pytest.raises(InputError, match=said):
            rds.export(one, tmp_path / "out", features=True, **options)
    assert not (tmp_path / "out").exists()
