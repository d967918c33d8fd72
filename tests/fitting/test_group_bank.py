"""Groups left out: who predicts whom, the weights, intervals of new groups, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rdeepsense import (
    MCDropRegressor,
    RDeepSenseClassifier,
    RDeepSenseRegressor,
    load,
)
from rdeepsense.fitting import network_fit
from rdeepsense.fitting.trainer import LeftOut, TrainedModel, Trainer, alike

GROUPS, EACH = 24, 40
SMALL: dict[str, Any] = {
    "hidden": (16,),
    "epochs": 15,
    "alpha": 0.0,
    "drop_prob": 0.0,
    "likelihood": "gaussian",
    "device": "cpu",
    "random_state": 0,
    "verbose": False,
}


def people(seed: int, groups: int = GROUPS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y = x + an offset of each group, which no input tells, + noise."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), EACH)
    X = rng.standard_normal((len(group), 2))
    y = X[:, 0] + rng.standard_normal(groups)[group] + 0.2 * rng.standard_normal(len(group))
    return X, y, group


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[TrainedModel]:
    """What `leave_groups_out` returned."""
    seen: list[TrainedModel] = []

    leave_groups_out = network_fit.leave_groups_out

    def spy(*given: Any) -> TrainedModel:
        seen.append(leave_groups_out(*given))
        return seen[-1]

    monkeypatch.setattr(network_fit, "leave_groups_out", spy)
    return seen


def left_out_of(seen: list[TrainedModel]) -> LeftOut:
    found = seen[-1].left_out
    assert found is not None
    return found


def test_weights_by_hand() -> None:
    weight = np.array([1.0, 1.0, 2.0, 3.0])
    # Shares of their groups 1/4, 1/4, 1/2 and 1, of mean 1/2.
    assert alike(weight, np.array(["a", "a", "a", "b"])).tolist() == [0.5, 0.5, 1.0, 2.0]


def test_each_group_is_predicted_by_a_network_that_did_not_see_it(
    trained: list[TrainedModel],
) -> None:
    X, y, group = people(0, 10)
    order = np.random.default_rng(1).permutation(len(y))  # groups lie scattered in the table
    X, y, group = X[order], y[order], group[order]
    RDeepSenseRegressor(**SMALL).fit(X, y, groups=group)
    found = left_out_of(trained)
    assert len(found.folds) == 8
    rows = np.concatenate([fold.hidden.index for fold in found.folds])
    assert np.array_equal(np.sort(rows), np.arange(len(y)))
    for fold in found.folds:
        assert np.all(np.diff(fold.hidden.index) > 0)  # in the order of the table
        assert not set(fold.group) & set(group[fold.trained_on.index])
        assert np.array_equal(fold.group, group[fold.hidden.index])
        assert np.array_equal(fold.y, y[fold.hidden.index])
    assert trained[-1].trained_on.index.size == len(y)


@pytest.fixture(scope="module")
def for_new_groups() -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
    """A fit that knows each group's place, by which offsets can be learnt by heart; new rows."""
    X, y, _ = placed(1, 400)
    return placed(0, 48), (X, y)


def placed(seed: int, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, group = people(seed, groups)
    place = np.random.default_rng(seed + 100).standard_normal((groups, 4))
    return np.column_stack([X, place[group]]), y, group


def share_inside(dist: Any, y: np.ndarray) -> float:
    low, high = dist.interval(0.9)
    return float(np.mean((low <= y) & (y <= high)))


@pytest.mark.slow
def test_intervals_hold_for_new_groups(for_new_groups: Any) -> None:
    """Validation rows at random know whose they are, and promise too much for others."""
    (X, y, group), new = for_new_groups
    model = RDeepSenseRegressor(**SMALL | {"hidden": (64, 64), "epochs": 40, "drop_prob": 0.05})
    model.fit(X, y)
    model.fitted_ = replace(model.fitted_, unlike=None)  # which flags and widens most new groups
    assert share_inside(model.predict_dist(new[0]), new[1]) < 0.6
    model.fit(X, y, groups=group)
    assert 0.85 < share_inside(model.predict_dist(new[0]), new[1]) < 0.95
    assert model.validation_scores_["n"] == len(y)
    assert 0.85 < model.validation_scores_["coverage_90"] < 0.95
    for method in ("laplace", "delta"):
        found = model.predict_dist(new[0], epistemic=method)
        assert 0.85 < share_inside(found, new[1]) < 0.95


def test_folds_of_the_choice_serve_again(trained: list[TrainedModel]) -> None:
    X, y, group = people(0, 10)
    model = RDeepSenseRegressor(**SMALL | {"alpha": "auto"}).fit(X, y, groups=group)
    assert model.training_["validated"] == "5-fold cross-validation"
    assert len(left_out_of(trained).folds) == 5
    assert trained[-1].by_fold is not None
    for fold in left_out_of(trained).folds:
        assert not set(fold.group) & set(group[fold.trained_on.index])


def test_few_groups_and_no_time_are_told(trained: list[TrainedModel]) -> None:
    X, y, _ = people(0, 4)
    model = RDeepSenseRegressor(**SMALL).fit(X, y, groups=np.arange(len(y)) % 2)
    assert model.training_["groups"] == "2 groups are too few to leave some out"
    model = RDeepSenseRegressor(**SMALL, max_seconds=0.0).fit(X, y, groups=np.arange(len(y)) % 4)
    assert "stopped" in model.training_["groups"]
    assert trained[-1].left_out is None


def test_who_leaves_no_groups_out(trained: list[TrainedModel]) -> None:
    X, y, group = people(0, 4)
    RDeepSenseRegressor(**SMALL).fit(X, y)
    RDeepSenseRegressor(**SMALL, calibrate=False).fit(X, y, groups=group)
    MCDropRegressor(hidden=(8,), epochs=1, device="cpu", random_state=0, verbose=False).fit(
        X, y, groups=group
    )
    assert [one.left_out for one in trained] == [None] * 3


def test_of_many_rows_some_are_enough(
    trained: list[TrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_fit, "MOST_ROWS", 300)
    X, y, group = people(0, 10)
    RDeepSenseRegressor(**SMALL).fit(X, y, groups=group)
    assert sum(len(fold.y) for fold in left_out_of(trained).folds) == 300
    assert len(trained[-1].trained_on) < len(y)  # the winner stays as it was chosen


def test_classes_and_equal_seeds(tmp_path: Any, trained: list[TrainedModel]) -> None:
    X, y, group = people(0, 6)
    labels = np.where(y > 0, "up", "down")
    own = {k: v for k, v in SMALL.items() if k != "likelihood"}
    first, second = (RDeepSenseClassifier(**own).fit(X, labels, groups=group) for _ in range(2))
    assert len(left_out_of(trained).folds) == 6
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    first.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict_proba(X), first.predict_proba(X))
    assert again.training_["validated"] == "6-fold cross-validation by groups"


def test_conformal_thresholds_are_those_of_a_new_group(tmp_path: Any) -> None:
    X, y, group = people(0)
    model = RDeepSenseRegressor(**SMALL | {"epochs": 5}, calibrate="conformal")
    model.fit(X, y, groups=group)
    kept = model.fitted_.conformal
    assert kept is not None
    assert kept.new_group
    assert kept.labels == tuple(range(9))
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    for coverage in (0.5, 0.9):
        ends = model.predict_interval(X, coverage, method="conformal")
        assert np.isfinite(ends).all()
        assert np.array_equal(again.predict_interval(X, coverage, method="conformal"), ends)
    assert np.isinf(model.predict_interval(X, 0.91, method="conformal")).all()
    with pytest.warns(UserWarning, match=r"2 groups were set aside.* 0\.667 at most"):
        model.fit(X[: 10 * EACH], y[: 10 * EACH], groups=group[: 10 * EACH])


@pytest.mark.parametrize("last", [False, True])
def test_an_interrupt_leaves_the_winner_as_it_was(
    last: bool, trained: list[TrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the bank, and in the training on all rows after it."""
    X, y, group = people(0, 4)
    train = Trainer.train
    whole = RDeepSenseRegressor(**SMALL, calibrate=False).fit(X, y, groups=group)

    def stopped(self: Trainer, group: Any, folds: int, *given: Any, **named: Any) -> Any:
        found = train(self, group, folds, *given, **named)
        self.interrupted = "stop_at" in named if last else folds > 1
        return found

    monkeypatch.setattr(Trainer, "train", stopped)
    model = RDeepSenseRegressor(**SMALL).fit(X, y, groups=group)
    assert model.training_["interrupted"]
    assert "stopped" in model.training_["groups"]
    assert trained[-1].left_out is None
    assert np.array_equal(model.predict(X), whole.predict(X))
