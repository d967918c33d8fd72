"""Thresholds, false alarms and AUROC of a novelty: by hand, and by what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.deploy.drawn_columns import drawn_columns
from rdeepsense.deploy.novelty_quality import aurocs, false_alarms, faulty, quantile
from rdeepsense.epistemic.novelty import Novelty


def test_a_quantile_by_hand() -> None:
    assert quantile(np.arange(1.0, 100.0), 0.99) == 99
    assert quantile(np.arange(1.0, 200.0), 0.99) == 198
    assert quantile(np.array([3.0, 1.0, 2.0]), 0.99) == 3


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


def test_columns_are_drawn_from_the_density() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4_000, 2)) @ [[1.0, 0.9], [0.0, 0.3]]
    x[:, 1] = np.exp(x[:, 1])
    novelty = Novelty.fit(x[:3_000], x[3_000:])
    drawn = drawn_columns(novelty)
    assert np.array_equal(drawn, drawn_columns(novelty))
    levels = np.linspace(0.05, 0.95, 10)
    own, known = (np.quantile(part, levels, axis=0) for part in (drawn, x))
    assert np.abs(own - known).max() < 0.25
    ranks = [np.argsort(np.argsort(part, axis=0), axis=0) for part in (drawn, x)]
    tied = [np.corrcoef(rank.T)[0, 1] for rank in ranks]
    assert abs(tied[0] - tied[1]) < 0.05
