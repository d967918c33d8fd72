"""Model files of estimators: bit-identical predictions, everything said in the header."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import rdeepsense as rds
from rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.datasets import FEATURES, simulate
from rdeepsense.modelfile import tensors as model_file

TASK = simulate(120, seed=0)
FRAME = pd.DataFrame(TASK.X, columns=list(FEATURES))
LABELS = np.where(TASK.y > 50, "high", "low")
COMMON: dict[str, Any] = {"hidden": (8, 6), "epochs": 5, "random_state": 3, "device": "cpu"}


def fitted(kind: str) -> Any:
    if kind == "classifier":
        return RDeepSenseClassifier(**COMMON, effort="quick").fit(FRAME, LABELS)
    y = np.column_stack([TASK.y, -TASK.y]) if kind == "two outputs" else TASK.y
    likelihood = "student" if kind == "student" else "gaussian"
    calibrate = kind != "uncalibrated"
    model = RDeepSenseRegressor(
        **COMMON, likelihood=likelihood, calibrate=calibrate, drop_prob=(0.1, 0.2), effort="quick"
    )
    return model.fit(FRAME, y)


@pytest.mark.parametrize(
    "kind", ["gaussian", "student", "two outputs", "uncalibrated", "classifier"]
)
def test_round_trip_is_bit_identical(tmp_path: Path, kind: str) -> None:
    model = fitted(kind)
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = rds.load(path)
    assert type(again) is type(model)
    assert again.predict_dist(FRAME) == model.predict_dist(FRAME)
    assert again.predict_dist(FRAME, samples=3) == model.predict_dist(FRAME, samples=3)
    assert again.feature_names_in_.tolist() == list(FEATURES)
    assert again.training_["seed"] == model.training_["seed"]
    assert np.array_equal(again.fitted_.kept_rows[0], model.fitted_.kept_rows[0])
    assert np.array_equal(again.fitted_.kept_rows[1], model.fitted_.kept_rows[1])
    for name, value in model.validation_scores_.items():
        assert again.validation_scores_[name] == value or math.isnan(value)
    kept = {k: v for k, v in model.get_params().items() if k not in ("device",)}
    assert {k: again.get_params()[k] for k in kept} == kept
    again.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(FRAME.rename(columns={"x0": "y0"}))


def test_labels_of_every_kind_come_back(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    for labels in (LABELS, LABELS.astype(object), TASK.y > 50, (TASK.y > 50) * 2 - 7):
        model = RDeepSenseClassifier(**COMMON, effort="quick").fit(TASK.X, labels)
        model.save(path)
        again = rds.load(path)
        assert np.array_equal(again.classes_, model.classes_)
        assert again.classes_.dtype == model.classes_.dtype
        assert np.array_equal(again.predict(TASK.X), model.predict(TASK.X))


def test_the_header_says_what_was_done(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    RDeepSenseRegressor(**COMMON, missing="mean", effort="quick").fit(FRAME, TASK.y).save(path)
    header, tensors = model_file.read(path)
    assert header["format"] == 1
    assert header["estimator"] == "RDeepSenseRegressor"
    assert header["architecture"]["arguments"] == {"hidden": [8, 6]}
    assert header["params"]["missing"] == "mean"
    assert header["feature_names"] == list(FEATURES)
    assert header["calibration"] == "scale"
    assert tensors["calibration.factor"].shape == ()
    assert header["training"]["rows"] == 120
    assert len(header["training"]["history"]) == len(header["training"]["evaluated_at"])
    assert header["validation_scores"]["n"] == 120
    assert set(header["versions"]) == {"rdeepsense", "python", "torch", "numpy", "scikit-learn"}
    assert tensors["rows.X"].shape == (120, 4)
    assert {"input.shift", "input.scale", "target.shift", "target.scale"} < set(tensors)


def test_rows_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    RDeepSenseRegressor(**COMMON, keep_rows=0, effort="quick").fit(TASK.X, TASK.y).save(path)
    assert not any(name.startswith("rows.") for name in model_file.read(path)[1])
    assert len(rds.load(path).fitted_.kept_rows[0]) == 0


class Own(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.last, self.first = nn.Linear(width, 1), nn.Linear(4, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(x)))


def test_a_network_of_ones_own_is_given_again(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    model = RDeepSenseRegressor(
        network=Own(), epochs=5, random_state=0, device="cpu", effort="quick"
    )
    model.fit(TASK.X, TASK.y).save(path)
    again = rds.load(path, network=Own())
    assert again.predict_dist(TASK.X) == model.predict_dist(TASK.X)
    with pytest.raises(rds.InputError, match=r"network of your own \(Own\).*network="):
        rds.load(path)
    with pytest.raises(rds.ModelFileError, match="does not fit the file's weights"):
        rds.load(path, network=Own(9))
    fitted("gaussian").save(path)
    with pytest.raises(rds.InputError, match="leave out network="):
        rds.load(path, network=Own())


def test_other_contents_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    model_file.write(path, {"kind": "checkpoint"}, {})
    with pytest.raises(rds.ModelFileError, match="is a checkpoint, not a model"):
        rds.load(path)
    model_file.write(path, {"kind": "model", "estimator": "os.system"}, {})
    with pytest.raises(rds.ModelFileError, match=r"holds a 'os.system', which is unknown here"):
        rds.load(path)
    fitted("gaussian").save(path)
    header, tensors = model_file.read(path)
    del tensors["input.scale"]
    model_file.write(path, header, tensors)
    with pytest.raises(rds.ModelFileError, match=r"lacks the tensor input.scale"):
        rds.load(path)


def test_every_kilobyte_of_truncation_and_flipped_bytes_of_a_real_model(tmp_path: Path) -> None:
    path, damaged = tmp_path / "m.safetensors", tmp_path / "damaged.safetensors"
    RDeepSenseRegressor(**{**COMMON, "hidden": (64, 64)}, effort="quick").fit(TASK.X, TASK.y).save(
        path
    )
    content = path.read_bytes()
    for length in range(0, len(content), 1024):
        damaged.write_bytes(content[:length])
        with pytest.raises(rds.ModelFileError, match="truncated"):
            rds.load(damaged)
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(content), 200):
        changed = bytearray(content)
        changed[position] ^= 1 << int(rng.integers(8))
        damaged.write_bytes(changed)
        with pytest.raises(rds.ModelFileError):
            rds.load(damaged)
