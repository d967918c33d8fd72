"""What an object predicts as one of our distributions, whatever form it has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rdeepsense import metrics
from rdeepsense.comparison import own_model
from rdeepsense.comparison.own_model import Frozen
from rdeepsense.distributions import Categorical, Gaussian, StudentT
from rdeepsense.errors import InputError

MEAN, STD = np.array([1.0, 2.0, -3.0]), np.array([0.5, 1.0, 2.0])


class Params:
    """As NGBoost's distributions are: parameters, a frozen distribution, None for the rest."""

    def __init__(self, dist: Any, **params: Any) -> None:
        self.params, self.dist = params, dist

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dist, name, None)


@pytest.mark.parametrize(
    "found",
    [
        Gaussian(MEAN, STD),
        stats.norm(MEAN, STD),
        Params(stats.norm(MEAN, STD), loc=MEAN, scale=STD),
        SimpleNamespace(params={"loc": MEAN, "scale": STD}),
        SimpleNamespace(mean=MEAN, std=STD),
        SimpleNamespace(mean=lambda: MEAN, std=lambda: STD),
        (MEAN, STD),
    ],
)
def test_gaussians_of_every_form(found: Any) -> None:
    assert own_model.numbers(found, 3, "it") == Gaussian(MEAN, STD)


def test_one_number_stands_for_all_rows() -> None:
    assert own_model.numbers((MEAN, 2.0), 3, "it") == Gaussian(MEAN, [2.0, 2.0, 2.0])
    assert own_model.numbers(stats.norm(1.0, 2.0), 3, "it") == Gaussian([1.0] * 3, [2.0] * 3)


def test_other_distributions_keep_their_shape() -> None:
    """A Laplace has loc and scale too; taken as a Gaussian it would be scored wrongly."""
    laplace = stats.laplace(MEAN, STD)
    found = own_model.numbers(Params(laplace, loc=MEAN, scale=STD), 3, "it")
    assert isinstance(found, Frozen)
    assert found.log_prob(MEAN) == pytest.approx(-np.log(2 * STD))
    low, high = found.interval(0.9)
    assert high - low == pytest.approx(2 * STD * np.log(10))


def test_all_figures_equal_those_of_our_own() -> None:
    y = np.array([1.4, 0.1, -3.2])
    ours = metrics.evaluate(StudentT(MEAN, STD, np.full(3, 5.0)), y)
    theirs = metrics.evaluate(own_model.numbers(stats.t(5.0, MEAN, STD), 3, "it"), y)
    assert theirs == pytest.approx(ours, rel=2e-3)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (MEAN, "it gave a ndarray; accepted: a distribution of this package"),
        (Gaussian(MEAN[:2], STD[:2]), r"needed: numbers of shape \(3,\)"),
        (Categorical(np.eye(3)), r"needed: numbers of shape \(3,\)"),
        ((MEAN[:, None], STD), r"it gave mean and std of shape \(3, 1\) and \(3,\)"),
        (stats.laplace(MEAN[:2], STD[:2]), r"mean\(\) has shape \(2,\)"),
        ((MEAN, -STD), "std"),
    ],
)
def test_refusals(found: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        own_model.numbers(found, 3, "it")


def test_classes() -> None:
    probs, labels = np.array([[0.2, 0.8], [0.5, 0.5]]), np.array(["a", "b"])
    expected = Categorical(probs, labels)
    for found in (
        probs,
        probs.astype(np.float32),
        Categorical(probs),
        expected,
        SimpleNamespace(class_probs=lambda: probs),
    ):
        dist = own_model.classes(found, 2, labels, "it")
        assert dist.probs == pytest.approx(expected.probs, abs=1e-7)
        assert dist.classes is not None
        assert dist.classes.tolist() == ["a", "b"]
    with pytest.raises(InputError, match=r"it gave ndarray of shape \(2, 2\)"):
        own_model.classes(probs, 2, np.array(["a", "b", "c"]), "it")
    with pytest.raises(InputError, match="sum of probs"):
        own_model.classes(probs / 2, 2, labels, "it")
