"""The peers: the rows they stop and calibrate on; where installed, the libraries themselves."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import rdeepsense as rds
from rdeepsense.arrays import Floats
from rdeepsense.calibration import Scale, Temperature
from rdeepsense.comparison.baselines import Boosted, BoostedPeer, NGBoost, Rows
from rdeepsense.comparison.trial import PEERS
from rdeepsense.data.rows import FitRows
from rdeepsense.errors import InputError, TrainingError
from rdeepsense.estimators import base


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, 50 + 10 * X[:, 0] + rng.normal(size=300)


X, Y = table()
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]


@dataclass(eq=False, repr=False)
class Flat(BoostedPeer):
    """Predicts a mean of 0 and a spread of 2 in standard units, and even odds."""

    called: ClassVar[str] = "Flat"

    def _train(self, train: Rows, validation: Rows, seed: int) -> int:
        self.train, self.validation = train, validation
        return 7

    def _moments(self, X: Floats) -> tuple[Floats, Floats]:
        return np.zeros(len(X)), np.full(len(X), 2.0)

    def _probabilities(self, X: Floats) -> Floats:
        count = len(np.unique(self.train.y))
        return np.full((len(X), count), 1 / count)


def test_validation_rows_are_those_of_our_estimators(monkeypatch: pytest.MonkeyPatch) -> None:
    split: list[FitRows] = []
    real = base.split_rows

    def watched(*args: Any) -> FitRows:
        split.append(real(*args))
        return split[-1]

    monkeypatch.setattr(base, "split_rows", watched)
    groups = np.arange(300) // 10
    for own in (None, groups):
        rds.RDeepSenseRegressor(hidden=(2,), epochs=1, random_state=3, effort="quick").fit(
            X, Y, groups=own
        )
        flat = Flat("regression", 3).fit(X, Y, groups=own)
        assert np.array_equal(flat.validation.X, split[-1].held_out[0])
        assert len(flat.train.X) + len(flat.validation.X) == 300
    held = {X[row].tobytes() for row in split[-1].validation.index}
    sides = [{X[row].tobytes() in held for row in np.flatnonzero(groups == g)} for g in range(30)]
    assert all(len(side) == 1 for side in sides)


def test_numbers_are_standardised_and_the_scale_is_fitted() -> None:
    flat = Flat("regression", 0).fit(X, Y)
    assert (flat.train.y.mean(), flat.train.y.std()) == pytest.approx((0, 1))
    factor = flat.candidate_.calibration
    z = flat.validation.y / 2
    rows = len(z)
    expected = 0.5 * np.log(np.mean(z**2)) * rows / (rows + 50)
    assert flat.candidate_ == Boosted(7, pytest.approx(np.exp(expected)))
    dist: Any = flat.predict_dist(X[:2])
    spread = (Y.max() - Y.min()) / (flat.train.y.max() - flat.train.y.min())
    assert dist.std == pytest.approx([2 * factor * spread] * 2, rel=0.2)
    thousandfold: Any = Flat("regression", 0).fit(X, 1000 * Y).predict_dist(X[:2])
    assert thousandfold.mean == pytest.approx(1000 * dist.mean)
    assert thousandfold.std == pytest.approx(1000 * dist.std)


def test_a_class_without_training_rows_is_not_impossible() -> None:
    flat = Flat("classification", 0).fit(X, LABELS, groups=LABELS)  # one group validates
    trained = np.isin(["a", "b", "c"], np.unique(LABELS)[flat._present])  # noqa: SLF001
    assert trained.sum() == 2
    dist: Any = flat.predict_dist(X[:1])
    assert dist.classes.tolist() == ["a", "b", "c"]
    assert dist.probs.sum() == pytest.approx(1)
    assert 0 < dist.probs[0, ~trained].item() < dist.probs[0, trained].min()


def test_a_class_of_one_group_is_trained_on() -> None:
    rare = np.where(X[:, 0] > 0, "a", "b")
    rare[0] = "c"
    for seed in range(10):
        dist: Any = Flat("classification", seed).fit(X, rare, groups=np.arange(300)).predict_dist(X)
        assert dist.probs[0, 2] > 0.3


def test_repeated_rows_are_weights() -> None:
    flat = Flat("regression", 0).fit(np.r_[X, X[:100]], np.r_[Y, Y[:100]])
    assert flat.train.weight is not None
    assert len(flat.train.y) + len(flat.validation.y) == 300
    assert np.average(flat.train.y, weights=flat.train.weight) == pytest.approx(0)


def test_refusals() -> None:
    with pytest.raises(InputError, match=r"Flat predicts one target; y has shape \(300, 2\)"):
        Flat("regression").fit(X, np.c_[Y, Y])
    two = np.where(np.arange(300) < 150, "a", "b")
    with pytest.raises(TrainingError, match="only one class is left to train on"):
        Flat("classification").fit(X, two, groups=two)


@pytest.mark.parametrize("name", list(PEERS))
class TestInstalled:
    @pytest.fixture(autouse=True)
    def _short(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip(name.lower(), exc_type=ImportError)
        module = "rdeepsense.comparison.baselines"
        most = "CATBOOST_MOST_TREES" if name == "CatBoost" else "MOST_STEPS"
        monkeypatch.setattr(f"{module}.{most}", 200)
        monkeypatch.setattr(f"{module}.PATIENCE", 20)

    def test_numbers(self, name: str) -> None:
        peer = PEERS[name]("regression", 0).fit(X[:200], Y[:200])
        dist = peer.predict_dist(X[200:])
        assert rds.metrics.rmse(dist, Y[200:]) < 4  # the target's own spread is 10
        assert rds.metrics.nll(dist, Y[200:]) < 3
        assert 0.7 < rds.metrics.coverage(dist, Y[200:], 0.9) <= 1
        assert 1 < peer.candidate_.trees <= 200
        again = PEERS[name]("regression", 0).fit(X[:200], Y[:200])
        assert again.predict_dist(X[200:]) == dist

    def test_classes(self, name: str) -> None:
        for labels in (LABELS, np.where(X[:, 0] > 0, "up", "down")):
            dist: Any = PEERS[name]("classification", 0).fit(X[:200], labels[:200]).predict_dist(X)
            assert dist.classes.tolist() == np.unique(labels).tolist()
            assert rds.metrics.accuracy(dist[200:], labels[200:]) > 0.8
            assert rds.metrics.nll(dist[200:], labels[200:]) < 0.7

    def test_the_calibration_is_that_of_the_task(self, name: str) -> None:
        peer: Any = PEERS[name]("regression", 0).fit(X, Y)
        assert isinstance(peer._calibration, Scale)  # noqa: SLF001
        peer = PEERS[name]("classification", 0).fit(X, LABELS)
        assert isinstance(peer._calibration, Temperature)  # noqa: SLF001


class TestBreakdown:
    """A stand-in for NGBoost whose trees meet gradients that are no numbers."""

    class Broken:
        base_models: ClassVar[list[int]] = [1, 2, 3]

        def __init__(self, best: int | None) -> None:
            self.best_val_loss_itr = best

        def fit(self, *rows: Any, **options: Any) -> None:
            raise ValueError("Input y contains NaN.\nand more")

    def trained(self, best: int | None, monkeypatch: pytest.MonkeyPatch) -> NGBoost:
        library = SimpleNamespace(
            NGBRegressor=lambda **_: self.Broken(best),
            Normal=None,
            default_tree_learner=DecisionTreeRegressor(),
        )
        monkeypatch.setattr("rdeepsense.comparison.baselines.require", lambda *_: library)
        monkeypatch.setattr(NGBoost, "_moments", lambda _, X: (X[:, 0], np.ones(len(X))))
        return NGBoost("regression", 0).fit(X, Y)

    def test_the_best_step_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.warns(UserWarning, match="broke down at step 4, after its best one"):
            assert self.trained(1, monkeypatch).candidate_.trees == 2

    def test_without_one_it_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(TrainingError, match="NGBoost: Input y contains NaN"):
            self.trained(None, monkeypatch)
