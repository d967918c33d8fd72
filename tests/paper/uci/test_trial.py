"""One trial: figures of every method of a model, warnings kept, no half-trained results."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from stopping import Steps

from rdeepsense.comparison.methods import parse_all
from rdeepsense.comparison.trial import FamilyTrial, run_trial, watched
from rdeepsense.errors import InterruptedTraining
from rdeepsense.training import loop


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, X[:, 0] + 0.2 * rng.normal(size=60)


X, Y = table()
SPLIT = ((X[:50], Y[:50]), (X[50:], Y[50:]))


def test_methods_share_one_fit() -> None:
    methods = parse_all(["SSP-1", "SSP-3"])
    trial = run_trial(methods, "regression", *SPLIT, (4,), 0, epochs=1)
    assert list(trial.methods) == ["SSP-1", "SSP-3"]
    one, three = trial.methods.values()
    assert one.figures["nll"] != three.figures["nll"]
    assert one.inside is not None
    assert (one.figures["n"], len(one.inside)) == (10, 13)
    assert trial.chosen is not None
    assert trial.chosen["likelihood"] in ("gaussian", "student")
    assert FamilyTrial.from_json(json.loads(json.dumps(trial.to_json(), allow_nan=False))) == trial


def test_warnings_are_kept_with_the_figures() -> None:
    """Two passes with little dropout often agree; the floor under their variance is said."""
    methods = parse_all(["MCDrop-2-paper"])
    trial = run_trial(methods, "regression", *SPLIT, (1,), 0, epochs=1)
    assert any("that floor is used" in text for text in trial.warnings)


def test_classes_of_any_label() -> None:
    labels = np.where(Y > 0, "high", "low")
    split = ((X[:50], labels[:50]), (X[50:], labels[50:]))
    trial = run_trial(parse_all(["SSP-1"]), "classification", *split, (4,), 0, epochs=1)
    assert "accuracy" in trial.methods["SSP-1"].figures
    assert trial.methods["SSP-1"].inside is None


def test_an_interrupted_training_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimator keeps what it has when Ctrl-C stops it; a benchmark must not."""
    monkeypatch.setattr(loop, "accelerate", Steps(3).accelerate)
    with pytest.raises(KeyboardInterrupt):
        run_trial(parse_all(["SSP-1"]), "regression", *SPLIT, (4,), 0, epochs=100)


def test_the_class_of_a_warning_decides_not_its_words() -> None:
    words = "training was interrupted at step 3 of 9"
    with watched() as texts:
        warnings.warn(words, UserWarning, stacklevel=1)
    assert texts == [words]
    with pytest.raises(KeyboardInterrupt), watched():
        warnings.warn("stopped", InterruptedTraining, stacklevel=1)
