"""Estimators on windows of a log: the recipe goes with the model, and a file may not bend it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.hostile_files import opened

import rdeepsense as rds
from rdeepsense.networks import Flattened


@pytest.fixture(scope="module")
def log() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(40) % 2, 50)
    return {
        "t": np.arange(2_000) / 50,
        **{name: label + rng.normal(0, 0.3, 2_000) for name in ("ax", "ay")},
        "what": np.array(["low", "high"])[label],
    }


@pytest.fixture(scope="module")
def model(log: dict[str, Any]) -> rds.RDeepSenseClassifier:
    w = rds.windows(log, "t", {"s": ["ax", "ay"]}, "400ms", label="what")
    options: dict[str, Any] = {"effort": "quick", "epochs": 3, "random_state": 0, "device": "cpu"}
    return rds.RDeepSenseClassifier(network=Flattened((8,)), **options).fit(w, w.y)


def test_windows_are_taken_like_their_array(
    log: dict[str, Any], model: rds.RDeepSenseClassifier
) -> None:
    w = model.windows(log)
    assert w.recipe == model.recipe_
    assert np.array_equal(model.predict_proba(w), model.predict_proba(np.asarray(w)))
    assert model.feature_names_in_.tolist() == ["ax", "ay"]
    without = model.windows({name: log[name] for name in ("t", "ax", "ay")}, truth=False)
    assert without.y is None
    assert np.array_equal(without[:], w[:])


def test_a_file_keeps_the_recipe(
    log: dict[str, Any], model: rds.RDeepSenseClassifier, tmp_path: Path
) -> None:
    model.save(tmp_path / "m")
    loaded = rds.load(tmp_path / "m")
    assert loaded.recipe_ == model.recipe_
    assert np.array_equal(
        loaded.predict_proba(loaded.windows(log)), model.predict_proba(model.windows(log))
    )


def test_another_fit_forgets_it(log: dict[str, Any], model: rds.RDeepSenseClassifier) -> None:
    w = model.windows(log)
    other = rds.RDeepSenseClassifier(**model.get_params()).fit(w, w.y).fit(np.asarray(w), w.y)
    assert other.recipe_ is None
    with pytest.raises(rds.InputError, match="not fitted on windows of a log"):
        other.windows(log)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("rate", 100.0, "windows are of 40 samples of 2 channels"),
        ("sensors", {"s": ["ax"]}, "windows are of 20 samples of 1 channels"),
        ("rate", 1e300, "rate = 1e.300 is garbled"),
        ("window", None, "window = None is garbled"),
        ("sensors", [["ax"]], "sensors = .* is garbled"),
        ("target", "x" * 99, "target = .* is garbled"),
    ],
)
def test_what_a_file_may_not_say(
    model: rds.RDeepSenseClassifier, tmp_path: Path, field: str, value: Any, words: str
) -> None:
    model.save(tmp_path / "m")
    file = opened(tmp_path / "m")
    file.header["windows"][field] = value
    file.write(tmp_path / "bad")
    with pytest.raises(rds.ModelFileError, match=words):
        rds.load(tmp_path / "bad")
