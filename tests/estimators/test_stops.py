"""Ctrl-C in a fit and the same fit again: the model file of a fit that was never stopped."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stopping import Steps, content
from torch import nn

import rdeepsense as rds
from rdeepsense.training import loop, schedule
from rdeepsense.training import loop as chunks


def table(seed: int, rows: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, np.sin(2 * X[:, 0]) + noise * rng.normal(size=rows)


X, Y = table(5, 90, 0.3)
LABELS = np.where(Y > 0.5, "high", np.where(Y > -0.5, "mid", "low"))
HELD = table(6, 40, 0.0)
FIT: dict[str, Any] = {"hidden": (6,), "epochs": 8, "random_state": 1, "verbose": False}
AUTO = {"alpha": "auto", "likelihood": "auto", "drop_prob": 0.1}
# Normalisation keeps state of its own, and dropout here draws from torch's generator.
OWN = nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 1))
Fit = Callable[[Path | None], Any]


FIXED = {"alpha": 0.5, "drop_prob": 0.05, "likelihood": "gaussian"}


def fits(estimator: type, y: Any = Y, validation: Any = None, **more: Any) -> Fit:
    def fit(checkpoint: Path | None) -> Any:
        fixed = {name: value for name, value in FIXED.items() if hasattr(estimator, name)}
        model = estimator(checkpoint=checkpoint, **{**fixed, **FIT, **more})
        return model.fit(X, y, validation=validation)

    return fit


CASES = {
    "RDeepSense": fits(rds.RDeepSenseRegressor),
    "classes": fits(rds.RDeepSenseClassifier, LABELS),
    "MCDrop": fits(rds.MCDropRegressor),
    "SSP": fits(rds.SSPRegressor, members=3),
    "a network of one's own": fits(rds.RDeepSenseRegressor, network=OWN),
    # Without epochs, the winner is tried at other lengths as well.
    "auto, lengths, cross-validated": fits(rds.RDeepSenseRegressor, epochs=None, **AUTO),
    "auto, lengths, validated": fits(rds.RDeepSenseRegressor, validation=HELD, epochs=None, **AUTO),
    "the paper's alpha": fits(rds.RDeepSenseRegressor, alpha="paper"),
}


def stopped_and_resumed(
    fit: Fit, folder: Path, monkeypatch: pytest.MonkeyPatch, places: int
) -> None:
    """Stop a fit at that many places, each time from the beginning, and compare."""
    counted = Steps()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "accelerate", counted.accelerate)
        model = fit(None)
    whole, predicted = content(model, folder / "whole"), model.predict(X)
    assert not model.training_["interrupted"]
    if os.environ.get("RDEEPSENSE_LONG"):
        places = counted.taken
    for step in sorted({*np.linspace(1, counted.taken, places).astype(int)}):
        checkpoint = folder / f"{step}.ckpt"
        with monkeypatch.context() as patch, warnings.catch_warnings():
            patch.setattr(loop, "accelerate", Steps(int(step)).accelerate)
            warnings.simplefilter("ignore", rds.InterruptedTraining)
            with suppress(KeyboardInterrupt):  # no candidate was trained at all
                assert fit(checkpoint).training_["interrupted"]
        resumed = fit(checkpoint)
        assert content(resumed, folder / "resumed") == whole, f"stopped at step {step}"
        assert resumed.predict(X).tobytes() == predicted.tobytes()


@pytest.mark.everyday(2, "slow")
@pytest.mark.parametrize("name", CASES)
def test_every_estimator(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "STEPS", (20, 30))
    stopped_and_resumed(CASES[name], tmp_path, monkeypatch, places=3)


def test_several_banks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where candidates do not fit in one bank, those that were not reached do not compete."""
    monkeypatch.setattr(chunks, "ACTIVATIONS", {"cpu": 900})
    stopped_and_resumed(CASES["the paper's alpha"], tmp_path, monkeypatch, places=4)


def test_a_winner_of_a_search_that_was_stopped_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first head is trained to its end, the second one not: nothing is finished."""
    fit, counted = fits(rds.RDeepSenseRegressor, validation=HELD, **AUTO), Steps()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "accelerate", counted.accelerate)
        fit(None)
    monkeypatch.setattr(loop, "accelerate", Steps(counted.taken - 1).accelerate)
    with pytest.warns(rds.InterruptedTraining):
        model = fit(None)
    assert model.training_["interrupted"]
