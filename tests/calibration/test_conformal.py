"""Conformal prediction: the rank by hand, the promise over many splits, groups, sets."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense import (
    Categorical,
    Gaussian,
    InputError,
    RDeepSenseClassifier,
    RDeepSenseRegressor,
    load,
)
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.datasets import simulate


def test_the_rank_by_hand() -> None:
    dist = Gaussian(np.zeros(9), np.full(9, 2.0))
    conformal = Conformal.fit(dist, np.arange(1.0, 10.0) * 2)  # scores 1 to 9
    # ceil(10 * 0.8) = 8th smallest, ceil(10 * 0.9) = 9th
    assert conformal.threshold(0.8, rows=2).tolist() == [[8.0], [8.0]]
    assert conformal.threshold(0.9, rows=1).tolist() == [[9.0]]
    assert conformal.threshold(0.95, rows=1).tolist() == [[np.inf]]


def test_outputs_and_groups_have_thresholds_of_their_own() -> None:
    dist = Gaussian(np.zeros((40, 2)), np.ones((40, 2)))
    y = np.column_stack([np.r_[np.ones(20), 5 * np.ones(20)], np.full(40, 3.0)])
    conformal = Conformal.fit(dist, y, groups=["phone"] * 20 + ["watch"] * 20)
    got = conformal.threshold(0.9, 2, groups=["watch", "phone"])
    assert got.tolist() == [[5.0, 3.0], [1.0, 3.0]]
    with pytest.raises(InputError, match="group 'ring' had no rows set aside"):
        conformal.threshold(0.9, 1, groups=["ring"])
    with pytest.raises(InputError, match="thresholds are per group"):
        conformal.threshold(0.9, 1)
    with pytest.raises(InputError, match="coverage = 1.0"):
        conformal.threshold(1.0, 1)


def test_the_promise_holds_over_200_splits() -> None:
    """One model, 200 random splits of fresh rows into rows set aside and rows to predict."""
    task = simulate(600, seed=0)
    model = RDeepSenseRegressor(
        hidden=(16,), epochs=20, random_state=0, device="cpu", effort="quick"
    )
    model.fit(task.X, task.y)
    fresh = simulate(3_000, seed=1)
    dist = model.predict_dist(fresh.X)
    rng = np.random.default_rng(0)
    inside: dict[float, list[float]] = {0.8: [], 0.9: [], 0.95: []}
    for _ in range(200):
        order = rng.permutation(3_000)
        aside, new = order[:300], order[300:]
        conformal = Conformal.fit(dist[aside], fresh.y[aside])
        z = np.abs(fresh.y[new] - dist.mean[new]) / dist.std[new]
        for coverage, shares in inside.items():
            shares.append(float(np.mean(z <= conformal.threshold(coverage, len(new))[:, 0])))
    for coverage, shares in inside.items():
        assert np.mean(shares) == pytest.approx(coverage, abs=0.01)


def test_estimators_set_rows_aside_that_no_other_choice_sees(tmp_path) -> None:  # type: ignore[no-untyped-def]
    task, test = simulate(1_000, seed=0), simulate(4_000, seed=1)
    model = RDeepSenseRegressor(
        hidden=(16,),
        epochs=20,
        random_state=0,
        device="cpu",
        calibrate="conformal",
        keep_rows=1000,
        effort="quick",
    )
    model.fit(task.X, task.y)
    assert model.fitted_.conformal.scores.shape == (200, 1)
    assert model.training_["rows"] + model.training_["validation_rows"] == 800
    low, high = model.predict_interval(test.X, 0.9, method="conformal")
    assert np.mean((low <= test.y) & (test.y <= high)) == pytest.approx(0.9, abs=0.04)
    model.save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors").predict_interval(test.X, 0.9, method="conformal")
    assert np.array_equal(again[0], low)
    with pytest.raises(InputError, match="method = 'magic' is unknown"):
        model.predict_interval(test.X, method="magic")
    plain = RDeepSenseRegressor(
        hidden=(16,), epochs=5, random_state=0, device="cpu", effort="quick"
    )
    with pytest.raises(InputError, match="needs rows set aside"):
        plain.fit(task.X, task.y).predict_interval(test.X, method="conformal")
    groups = np.where(test.X[:, 0] > 0, "loud", "quiet")
    plain.conformalise(test.X[:2000], test.y[:2000], groups[:2000])
    low, high = plain.predict_interval(test.X[2000:], 0.9, method="conformal", groups=groups[2000:])
    inside = (low <= test.y[2000:]) & (test.y[2000:] <= high)
    for label in ("loud", "quiet"):
        assert inside[groups[2000:] == label].mean() == pytest.approx(0.9, abs=0.03)


def test_sets_of_classes() -> None:
    task, test = simulate(4_000, seed=0), simulate(3_000, seed=1)
    model = RDeepSenseClassifier(
        hidden=(16,), epochs=20, random_state=0, device="cpu", calibrate="conformal", effort="quick"
    )
    labels, truth = (np.digitize(t.y, [40.0, 50.0, 60.0]) for t in (task, test))
    model.fit(task.X, labels)
    chosen = model.predict_set(test.X, coverage=0.9)
    assert chosen.shape == (3_000, 4)
    assert chosen[np.arange(3_000), truth].mean() == pytest.approx(0.9, abs=0.03)
    assert model.predict_set(test.X, coverage=0.99).sum() > chosen.sum()
    assert Conformal.fit(Categorical([[0.2, 0.8]]), np.array([1])).scores.item() == pytest.approx(
        0.2
    )
