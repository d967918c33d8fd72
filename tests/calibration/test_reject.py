"""Abstaining: exact coverage on hand-made scores, known risks, and what enters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import rdeepsense as rds
from rdeepsense import Categorical, Gaussian, InputError, RejectOption
from rdeepsense.calibration.reject import epistemic_score, predicted_score
from rdeepsense.refusal import Refusal, rejected
from rdeepsense.status import Status


class Told:
    """A model that says what its inputs say: column 0 the mean, column 1 the std."""

    def predict_dist(self, X: Any) -> Gaussian:
        return Gaussian(X[:, 0], X[:, 1])

    def predict(self, X: Any) -> Any:
        return X[:, 0].copy()

    def epistemic_std(self, X: Any, method: str = "laplace") -> Any:
        return X[:, 1] * (10.0 if method == "delta" else 1.0)


class ToldClasses:
    """Two classes; the input is the probability of the second."""

    labels = np.array(["no", "yes"])

    def predict_dist(self, X: Any) -> Categorical:
        return Categorical(np.column_stack([1 - X, X]))

    def predict(self, X: Any) -> Any:
        return self.labels[(X > 0.5).astype(int)]

    def mutual_information(self, X: Any, method: str = "laplace") -> Any:
        return np.minimum(X, 1 - X)


def rows(std: Any) -> np.ndarray:
    return np.column_stack([np.zeros(len(std)), std])


def binary(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that are right: the risk of any accepted set is the mean of its 1 - max p."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n)
    return p, ToldClasses.labels[(rng.uniform(size=n) < p).astype(int)]


def test_target_coverage_is_exact() -> None:
    X = rows([5.0, 1.0, 4.0, 2.0, 3.0, 9.0, 8.0, 7.0, 6.0, 10.0])
    y = X[:, 1] / 2
    refuse = RejectOption(target_coverage=0.3).fit(Told(), X, y)
    assert refuse.coverage_ == 0.3
    assert refuse.threshold_ == 3.0  # in the unit of y
    assert refuse.risk_ == pytest.approx((0.5 + 1 + 1.5) / 3)
    assert refuse.accept(X).tolist() == (X[:, 1] <= 3).tolist()
    assert refuse.uncertainty(X) == pytest.approx(X[:, 1])
    assert RejectOption(target_coverage=1.0).fit(Told(), X, y).coverage_ == 1.0
    assert RejectOption(target_coverage=0.31).fit(Told(), X, y).coverage_ == 0.4  # never less


def test_rows_of_equal_score_stay_together() -> None:
    X = rows([1.0, 2.0, 2.0, 2.0, 3.0])
    refuse = RejectOption(target_coverage=0.4).fit(Told(), X, np.arange(5.0))
    assert refuse.coverage_ == 0.8


def test_a_threshold_is_taken_as_it_is() -> None:
    X, y = rows([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])
    refuse = RejectOption(threshold=0.0).fit(Told(), X, y)
    assert (refuse.threshold_, refuse.coverage_) == (0.0, 0.0)
    assert np.isnan(refuse.risk_)


def test_target_risk_takes_the_largest_coverage() -> None:
    X = rows(np.arange(1.0, 7.0))
    y = np.array([1.0, 3.0, 1.0, 1.0, 9.0, 0.0])  # risk: 1, 2, 5/3, 3/2, 3, 5/2
    refuse = RejectOption(target_risk=1.5).fit(Told(), X, y)
    assert (refuse.coverage_, refuse.risk_) == (4 / 6, 1.5)  # not 1/6, where it is met first
    assert RejectOption(target_risk=2.5).fit(Told(), X, y).coverage_ == 1.0
    with pytest.raises(InputError, match=r"target_risk = 0.5 is out of reach .* is 1, with 16.7%"):
        RejectOption(target_risk=0.5).fit(Told(), X, y)


def test_target_risk_where_the_risk_is_known() -> None:
    """p uniform: rows with 1 - max p <= t have risk t / 2, and a share 2 t of all are such."""
    refuse = RejectOption(target_risk=0.1).fit(ToldClasses(), *binary(20_000, 0))
    assert refuse.threshold_ == pytest.approx(0.2, abs=0.02)
    assert refuse.coverage_ == pytest.approx(0.4, abs=0.04)
    p, y = binary(50_000, 1)
    accepted = refuse.accept(p)
    assert np.mean(ToldClasses().predict(p)[accepted] != y[accepted]) == pytest.approx(
        0.1, abs=0.01
    )


def test_confidence_holds_the_risk_on_other_rows() -> None:
    """Without a bound about half of the true risks, t / 2, are above the target."""
    bound, plain = [], []
    for seed in range(40):
        p, y = binary(3_000, seed)
        plain.append(RejectOption(target_risk=0.15).fit(ToldClasses(), p, y).threshold_ / 2)
        sure = RejectOption(target_risk=0.15, confidence=0.9).fit(ToldClasses(), p, y)
        bound.append(sure.threshold_ / 2)
    assert np.mean(np.array(plain) > 0.15) > 0.25
    assert np.mean(np.array(bound) > 0.15) <= 0.1
    assert np.mean(bound) > 0.05  # and something is accepted


def test_predictions_are_masked() -> None:
    X, y = rows([1.0, 3.0, 2.0]), np.array([1.0, 2.0, 3.0])
    refuse = RejectOption(target_coverage=0.6).fit(Told(), X, y)
    said = refuse.predict(X)
    assert said.mask.tolist() == [False, True, False]
    assert said.compressed().tolist() == [0.0, 0.0]
    assert np.isnan(np.asarray(said)[1])  # code that does not know of masks
    p, labels = np.array([0.1, 0.45, 0.9]), np.array(["no", "no", "yes"])
    said = RejectOption(target_coverage=0.6).fit(ToldClasses(), p, labels).predict(p)
    assert said.tolist() == ["no", None, "yes"]


def test_several_outputs_count_in_units_of_their_spread() -> None:
    dist = Gaussian(np.zeros((1, 2)), [[2.0, 300.0]])
    assert predicted_score(dist, [1.0, 100.0]).tolist() == [2.5]
    assert predicted_score(Categorical([[0.2, 0.7, 0.1]])) == pytest.approx([0.3])


def test_epistemic_scores() -> None:
    X, y = rows([1.0, 2.0]), np.array([0.0, 2.0])
    refuse = RejectOption(target_coverage=0.5, score="epistemic", method="delta").fit(Told(), X, y)
    assert refuse.uncertainty(X).tolist() == [10.0, 20.0]
    p = np.array([0.4, 0.9])
    assert epistemic_score(ToldClasses(), p) == pytest.approx([0.4, 0.1])


def test_with_an_estimator() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (600, 2))
    y = np.column_stack([X[:, 0] + np.abs(X[:, 1]) * rng.normal(size=600), 100 * X[:, 1]])
    model = rds.RDeepSenseRegressor(
        hidden=(16,), epochs=30, random_state=0, verbose=False, effort="quick"
    )
    model.fit(X[:400], y[:400])
    noisy = RejectOption(target_coverage=0.5).fit(model, X[400:], y[400:])
    assert noisy.coverage_ == 0.5
    assert noisy.predict(X).shape == (600, 2)
    assert noisy.spread_ == pytest.approx(y[400:].std(axis=0))
    unlike = RejectOption(target_coverage=0.9, score="epistemic").fit(model, X[400:], y[400:])
    assert not unlike.accept(np.array([[40.0, -40.0]]))[0]
    assert clone(unlike).get_params()["score"] == "epistemic"


def test_novelty_refuses_what_is_unlike_the_training_rows() -> None:
    """Two sensors of one quantity that disagree, each within its range."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(-2, 2, (900, 1)), 2, axis=1) + 0.05 * rng.normal(size=(900, 2))
    y = X.sum(axis=1) + rng.normal(size=900)
    settings: dict[str, Any] = {"hidden": (8,), "epochs": 5, "random_state": 0, "verbose": False}
    model = rds.RDeepSenseRegressor(**settings, effort="quick").fit(X[:600], y[:600])
    refuse = RejectOption(threshold=0.95, score="novelty")
    with pytest.raises(InputError, match=r"novelty needs fit_novelty\(X\)"):
        refuse.fit(model, X[600:], y[600:])
    model.fit_novelty(X[:600], X[600:750])
    refuse.fit(model, X[750:], y[750:])
    assert refuse.coverage_ == pytest.approx(0.95, abs=0.05)
    broken = np.array([[1.0, -1.0], [-1.5, 0.5]])
    assert refuse.uncertainty(broken).tolist() == model.novelty(broken).tolist()
    assert not refuse.accept(broken).any()
    assert refuse.predict(np.vstack([broken, [[1.0, 1.0]]])).mask.tolist() == [True, True, False]
    kept = RejectOption(target_coverage=0.9, score="novelty").fit(model, X[750:], y[750:])
    assert kept.coverage_ == 0.9
    with pytest.raises(InputError, match='"novelty" needs a model with fit_novelty; Told has none'):
        refuse.fit(Told(), rows([1.0, 2.0]), np.zeros(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of threshold, target_risk, target_coverage; got none"),
        ({"threshold": 1, "target_risk": 1}, "got threshold and target_risk"),
        ({"target_coverage": 0}, "target_coverage = 0.0; accepted: above 0, up to 1"),
        ({"target_coverage": 1.1}, "target_coverage = 1.1"),
        ({"target_risk": -1}, "target_risk = -1.0; accepted: 0 or more"),
        ({"threshold": np.nan}, "threshold = nan is not finite"),
        ({"threshold": 1, "score": "x"}, "'x' is unknown; accepted: predicted, epistemic, novelty"),
        ({"threshold": 1, "confidence": 0.9}, "confidence goes with target_risk"),
        ({"target_risk": 1, "confidence": 2}, "confidence = 2; accepted: between 0 and 1"),
        ({"target_risk": 1, "confidence": 0.9}, "confidence is for classes"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RejectOption(**options).fit(Told(), rows([1.0, 2.0]), np.zeros(2))


def test_refused_rows_and_models() -> None:
    X = rows([1.0, 2.0])
    with pytest.raises(InputError, match=r"y_val has shape \(3,\), the model's predictions \(2,\)"):
        RejectOption(threshold=1).fit(Told(), X, np.zeros(3))
    with pytest.raises(InputError, match="y_val must be finite"):
        RejectOption(threshold=1).fit(Told(), X, [0.0, np.nan])
    with pytest.raises(InputError, match="needs a model with epistemic_std; object has none"):
        epistemic_score(object(), X)


class ToldAnything:
    """A model whose std is its input, which need not be a number; NaN inputs have no prediction."""

    is_categorical = False

    def __init__(self, answers: bool = False) -> None:
        if answers:
            self.answerable = lambda X: ~np.isnan(X)

    def predict_dist(self, X: Any) -> Any:
        assert not (hasattr(self, "answerable") and np.isnan(X).any())
        return SimpleNamespace(
            shape=np.shape(X), mean=np.zeros(len(X)), std=np.asarray(X), is_categorical=False
        )

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


@pytest.mark.parametrize("answers", [False, True])
def test_a_score_that_is_no_number_is_rejected(answers: bool) -> None:
    X = np.array([1.0, 2.0, 3.0, 4.0])
    option = RejectOption(threshold=3.0).fit(ToldAnything(answers), X, np.zeros(4))
    further = np.array([0.5, np.nan, 3.0, np.inf, 3.5])
    assert option.accept(further).tolist() == [True, False, True, False, False]
    assert option.status(further).tolist() == [0, 8, 0, 8, 8]
    assert option.accept(np.full(3, np.nan)).tolist() == [False] * 3
    np.testing.assert_array_equal(option.uncertainty(further), further)


@pytest.mark.parametrize("goal", [{"target_coverage": 0.75}, {"target_risk": 1.0}])
def test_no_threshold_comes_of_scores_that_are_no_numbers(goal: dict[str, float]) -> None:
    X, y = np.array([np.nan, 2.0, np.inf, 1.0, 3.0, 4.0, 5.0, 6.0]), np.zeros(8)
    option = RejectOption(**goal).fit(ToldAnything(), X, y)
    assert (option.threshold_, option.coverage_) == (6.0, 0.75)
    with pytest.raises(InputError, match="is out of reach on these validation rows"):
        RejectOption(**goal).fit(ToldAnything(), np.full(8, np.nan), y)


def test_the_rule() -> None:
    assert rejected([1.0, 2.0, 3.0, np.inf, np.nan], 2.0).tolist() == [False, False, *[True] * 3]
    rule = Refusal(np.array([0.3]), np.ones(1))
    probs = np.array([[0.8, 0.2], [0.6, 0.4], [np.nan, 0.9], [0.9, np.nan]])
    assert rule.refused(probs, is_classifier=True).tolist() == [False, True, True, True]
    rule = Refusal(np.array([1.0]), np.array([1.0, 10.0]))
    std = np.array([[1.0, 10.0], [1.0, 11.0], [np.nan, 1.0], [0.1, np.nan]])
    assert rule.refused(std, is_classifier=False).tolist() == [False, True, True, True]


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars"])
def test_rows_that_cannot_be_predicted_are_rejected(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 2))
    model = rds.RDeepSenseRegressor(
        hidden=(4,), epochs=1, random_state=0, verbose=False, effort="quick"
    )
    made = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "list": lambda X: X.tolist()}
    table = made.get(kind, np.asarray)
    model.fit(table(X), X[:, 0])
    option = RejectOption(target_coverage=1.0).fit(model, table(X), X[:, 0])
    rows = X[:6].copy()
    rows[1, 0], rows[3, 1], rows[4] = np.nan, np.inf, np.nan
    assert option.accept(table(rows)).tolist() == [True, False, True, False, False, True]
    missing, far = Status.MISSING | Status.UNSURE, Status.OUT_OF_RANGE | Status.UNSURE
    assert option.status(table(rows)).tolist() == [0, missing, 0, far, missing, 0]
    assert not option.accept(table(rows[[1, 3]])).any()
