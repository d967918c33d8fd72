"""A first look takes seconds."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import pytest

import rdeepsense as rds
from rdeepsense import networks
from rdeepsense.estimators.network import QUICK_FOLDS, QUICK_STEPS
from rdeepsense.training import Schedule


@pytest.mark.parametrize("rows", [10, 300, 50_000, 10_000_000])
def test_a_bound_on_the_steps_keeps_two_epochs(rows: int) -> None:
    usual, short = Schedule.of(rows, 100, 1e-3, 0), Schedule.of(rows, 100, 1e-3, 0, most_steps=300)
    per_epoch = max(1, rows // usual.batch_size)
    assert short.batch_size == usual.batch_size
    assert short.steps <= usual.steps
    assert 300 <= short.steps < 300 + per_epoch or short.steps == 2 * per_epoch


def test_a_quick_fit_of_windows_has_few_folds_and_steps(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rdeepsense.estimators.rdeepsense.QUICK_STEPS", 12)
    X, y = rng.normal(size=(96, 16, 3)), np.tile(["a", "b"], 48)
    small = networks.DeepSense(sensors=(3,), interval=8, filters=4, hidden=4)
    model = rds.RDeepSenseClassifier(effort="quick", network=small, random_state=0, verbose=False)
    told: Any = model.fit(X, y, groups=np.repeat(np.arange(12), 8)).training_
    assert told["validated"] == f"{QUICK_FOLDS}-fold cross-validation by groups"
    assert told["planned_steps"] <= 18  # in whole epochs
    assert QUICK_STEPS == 300


def test_a_comparison_is_of_fast_methods_by_default() -> None:
    defaults = signature(rds.compare).parameters
    assert "RDeepSense" not in defaults["methods"].default  # a search of minutes
    assert defaults["splits"].default == 3
