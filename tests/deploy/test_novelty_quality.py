"""False alarms and AUROC of a novelty: by hand, and by what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.deploy.quality import aurocs, false_alarms, faulty


def test_one_row_in_a_hundred_is_a_false_alarm() -> None:
    rng = np.random.default_rng(0)
    share = np.mean([false_alarms(rng.normal(size=400), 0.99) for _ in range(200)])
    assert 0.007 < share < 0.013


@pytest.mark.parametrize("shape", [(50, 3), (50, 8, 3)])
def test_faults_are_as_they_are_called(shape: tuple[int, ...]) -> None:
    X = np.random.default_rng(0).normal(size=shape)
    found = dict(faulty(X))
    assert np.array_equal(np.sort(found["shuffled"], axis=0)[..., 0], np.sort(X, axis=0)[..., 0])
    for name in ("stuck", "drift"):
        changed = (found[name] != X).reshape(50, -1, 3).any(1)
        assert (changed.sum(1) == 1).mean() > 0.95
    if len(shape) == 3:
        assert ((found["stuck"].std(1) < 1e-12).sum(1) == 1).all()


def test_auroc_of_a_score_that_knows_and_of_one_that_does_not() -> None:
    X = np.random.default_rng(0).normal(size=(100, 2)) * 1e-3 + [1.0, 1.0]
    assert aurocs(lambda rows: rows[:, 0] * 0, X)["drift"] == 0.5
    assert aurocs(lambda rows: np.abs(rows - 1).max(1), X)["drift"] > 0.6
