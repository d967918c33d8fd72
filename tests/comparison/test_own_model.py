"""Objects of one's own: copied, fitted on the rows given, asked in the best way they have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rdeepsense as rds
from rdeepsense.comparison.own_model import Intervals, OwnModel
from rdeepsense.errors import InputError


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, X[:, 0] + 0.1 * rng.normal(size=40)


X, Y = table()


class Constant:
    """Remembers mean and standard deviation of what it was fitted on."""

    def __init__(self) -> None:
        self.fits: list[Any] = []

    def fit(self, X: Any, y: Any, groups: Any = None) -> None:
        self.fits.append(groups)
        self.mean, self.std = np.mean(y), np.std(y)

    def moments(self, X: Any) -> tuple[Any, Any]:
        return np.full(len(X), self.mean), np.full(len(X), self.std)


class WithDist(Constant):
    def predict_dist(self, X: Any) -> Any:
        return self.moments(X)


class WithPredDist(Constant):
    def pred_dist(self, X: Any) -> Any:
        loc, scale = self.moments(X)
        return SimpleNamespace(params={"loc": loc, "scale": scale})


class WithStd(Constant):
    def predict(self, X: Any, return_std: bool = False) -> Any:
        return self.moments(X) if return_std else self.moments(X)[0]


class WithInterval(Constant):
    def predict_interval(self, X: Any, coverage: float) -> Any:
        return rds.Gaussian(*self.moments(X)).interval(coverage)


class WithQuantiles(Constant):
    def predict(self, X: Any, quantiles: Any = (0.5,)) -> Any:
        dist = rds.Gaussian(*self.moments(X))
        return np.stack([dist.quantile(q) for q in quantiles], axis=1)


@pytest.mark.parametrize("kind", [WithDist, WithPredDist, WithStd])
def test_distributions(kind: type[Constant]) -> None:
    given = kind()
    dist: Any = OwnModel(given, "regression", "it").fit(X, Y, groups=np.arange(40)).predict_dist(X)
    assert dist == rds.Gaussian(np.full(40, Y.mean()), np.full(40, Y.std()))
    assert not given.fits  # a copy was fitted


@pytest.mark.parametrize(("kind", "point"), [(WithInterval, False), (WithQuantiles, True)])
def test_intervals(kind: type[Constant], point: bool) -> None:
    found = OwnModel(kind(), "regression", "it").fit(X, Y).predict_dist(X)
    assert isinstance(found, Intervals)
    assert (found.point is not None) is point
    low, high = rds.Gaussian(np.full(40, Y.mean()), np.full(40, Y.std())).interval(0.9)
    assert found.bounds[0.9][0] == pytest.approx(low)
    assert found.bounds[0.9][1] == pytest.approx(high)


def test_groups_reach_a_fit_that_takes_them() -> None:
    model = OwnModel(WithDist(), "regression", "it").fit(X, Y, groups=[1, 2])
    assert model.fitted_.fits == [[1, 2]]
    plain = GaussianProcessRegressor(alpha=0.1)
    OwnModel(plain, "regression", "it").fit(X, Y, groups=np.arange(40))


def test_models_of_scikit_learn() -> None:
    alone = GaussianProcessRegressor(alpha=0.1)
    piped = make_pipeline(StandardScaler(), alone)
    for given in (alone, piped):
        dist: Any = OwnModel(given, "regression", "it").fit(X, Y).predict_dist(X[:3])
        expected = given.fit(X, Y).predict(X[:3], return_std=True)
        assert dist.mean == pytest.approx(expected[0])
        assert dist.std == pytest.approx(expected[1])
    labels = np.where(Y > 0, "up", "down")
    own = OwnModel(LogisticRegression(), "classification", "it").fit(X, labels)
    dist = own.predict_dist(X)
    assert dist.classes.tolist() == ["down", "up"]
    assert rds.metrics.accuracy(dist, labels) > 0.9


def test_our_own_estimators_show_no_second_bar() -> None:
    given = rds.RDeepSenseRegressor(
        hidden=(2,), epochs=1, random_state=0, effort="quick", likelihood="gaussian"
    )
    model = OwnModel(given, "regression", "it").fit(X, Y)
    assert (model.fitted_.verbose, given.verbose) == (False, True)
    assert isinstance(model.predict_dist(X), rds.Gaussian)


def test_an_object_that_cannot_be_cloned_is_copied() -> None:
    class Odd(BaseEstimator, WithDist):
        made: ClassVar[int] = 0

        def __init__(self, size: int = 1) -> None:
            self.fits = []
            self.size = [size]  # another object than was given, which `clone` refuses

    dist: Any = OwnModel(Odd(), "regression", "it").fit(X, Y).predict_dist(X)
    assert dist.mean[0] == pytest.approx(Y.mean())


@pytest.mark.parametrize(
    ("model", "task", "message"),
    [
        (WithDist, "regression", r"method 'it' is a class; give an object, WithDist\(...\)"),
        (object(), "regression", r"a object, has no fit\(X, y\)"),
        (Constant(), "regression", r"one of these is needed: predict_dist\(X\), .*quantiles"),
        (LogisticRegression(), "regression", "says nothing about its uncertainty"),
        (WithStd(), "classification", r"for classification one .*predict_proba\(X\)"),
    ],
)
def test_refusals(model: Any, task: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        OwnModel(model, task, "it")
