"""MAP of the last layer for classes: an independent optimum, bounds, and the choice of `rows`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from rdeepsense.adaptation.corrections import (
    AdaptedClasses,
    ClassPrior,
    ClassStream,
    first_of_each,
    most_probable,
    tolerance,
)
from rdeepsense.arrays import Floats, Integers


@pytest.fixture
def phi(rng: np.random.Generator) -> Floats:
    """The last hidden layer of forty rows: five features and a one."""
    return np.column_stack([rng.normal(size=(40, 5)), np.ones(40)])


def drawn(logits: Floats, rng: np.random.Generator) -> Integers:
    gumbel = rng.gumbel(size=logits.shape)
    return np.argmax(logits + gumbel, axis=1).astype(np.int64)


def test_the_most_probable_weights_are_those_of_logistic_regression(
    phi: Floats, rng: np.random.Generator
) -> None:
    """From logits of 0 and an isotropic prior it is scikit-learn's ridge, without its intercept."""
    y = drawn(phi @ rng.normal(size=(6, 3)), rng)
    y[:3] = [0, 1, 2]  # scikit-learn knows no class that has no row
    found = most_probable(phi, np.zeros((40, 3)), y, np.zeros((6, 3)), 0.7 * np.eye(6))
    oracle = LogisticRegression(C=0.7, fit_intercept=False, solver="newton-cg", tol=1e-10)
    np.testing.assert_allclose(found.T, oracle.fit(phi, y).coef_, atol=1e-8)


@pytest.mark.parametrize("spread", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_the_most_probable_weights_are_as_near_the_optimum_as_promised(
    spread: float, size: float, phi: Floats, rng: np.random.Generator
) -> None:
    """In coordinates in which the prior is N(0, 1), the gradient is as short as the tolerance."""
    half = spread * rng.normal(size=(6, 6))
    covariance, mean = half @ half.T + 0.1 * spread**2 * np.eye(6), rng.normal(size=(6, 4))
    logits, y = size * rng.normal(size=(40, 4)), rng.integers(0, 4, 40)
    found = most_probable(phi, logits, y, mean, covariance)
    left = np.eye(4)[y] - softmax(logits + phi @ found, axis=1)
    root = np.linalg.cholesky(covariance)
    gradient = np.linalg.solve(root, found - mean) - (phi @ root).T @ left
    goal = tolerance(phi, logits + phi @ mean, covariance)
    assert goal < 1e-8 * max(1, spread)
    assert np.linalg.norm(gradient) <= 2 * goal  # twice, because the sums are rounded otherwise


def test_a_change_lies_in_what_the_rows_span(rng: np.random.Generator) -> None:
    """Two rows of a layer of 300: the rest of the weights stays, and it takes no large matrix."""
    phi = rng.normal(size=(2, 300))
    found = most_probable(phi, np.zeros((2, 3)), np.array([0, 2]), np.zeros((300, 3)), np.eye(300))
    assert np.linalg.matrix_rank(found, tol=1e-9) <= 2
    left = np.eye(3)[[0, 2]] - softmax(phi @ found, axis=1)
    np.testing.assert_allclose(found, phi.T @ left, atol=1e-7)


@pytest.mark.parametrize("labels", ["flipped", "constant", "random"])
def test_absurd_labels_move_a_logit_by_a_bounded_amount(
    labels: str, phi: Floats, rng: np.random.Generator
) -> None:
    logits = 30 * rng.normal(size=(40, 3))
    y = {
        "flipped": np.argmin(logits, axis=1),
        "constant": np.zeros(40, int),
        "random": rng.integers(0, 3, 40),
    }[labels].astype(np.int64)
    none = AdaptedClasses.none(ClassPrior(50.0), phi.T @ phi / 40, 3)
    state = none.observed(phi, logits, y)
    rows = 10 * rng.normal(size=(500, 6))
    bound = np.abs(rows @ none.covariance @ phi.T).sum(1, keepdims=True)
    assert (np.abs(state.shift(rows)) <= bound * (1 + 1e-9)).all()
    first, after = (
        log_softmax(logits + one.shift(phi), axis=1)[np.arange(40), y].sum()
        for one in (none, state)
    )
    assert after >= first


def test_further_labels_go_on_from_the_first(phi: Floats, rng: np.random.Generator) -> None:
    truth = rng.normal(size=(6, 3))
    y = drawn(phi @ truth, rng)
    none = AdaptedClasses.none(ClassPrior(20.0), phi.T @ phi / 40, 3)
    at_once = none.observed(phi, np.zeros((40, 3)), y)
    half = none.observed(phi[:20], np.zeros((20, 3)), y[:20])
    both = half.observed(phi[20:], np.zeros((20, 3)), y[20:])
    assert np.linalg.eigvalsh(none.covariance - half.covariance).min() > -1e-12
    assert np.linalg.eigvalsh(half.covariance - both.covariance).min() > -1e-12
    assert np.linalg.eigvalsh(both.covariance).min() > 0
    away = [np.abs(one.shift(phi) - at_once.shift(phi)).mean() for one in (both, half, none)]
    assert away[0] < 0.5 * away[1] < 0.5 * away[2]


def group(offset: float, seed: int) -> ClassStream:
    """A group whose weights differ from the model's by `offset`, 60 rows of three classes."""
    rng = np.random.default_rng(seed)
    phi = np.column_stack([rng.normal(size=(60, 4)), np.ones(60)])
    trained = 1.5 * np.random.default_rng(99).normal(size=(5, 3))
    own = trained + offset * rng.normal(size=(5, 3))
    logits = phi @ trained
    information = 1_000 * 0.15 * np.eye(5)
    return ClassStream(phi, logits, drawn(phi @ own, rng), information, 1_000.0)


def test_groups_that_differ_ask_for_few_rows_and_others_for_many() -> None:
    apart = ClassPrior.choose([group(2.0, seed) for seed in range(20)])
    alike = ClassPrior.choose([group(0.0, seed) for seed in range(20)])
    assert apart.groups == alike.groups == 20
    assert apart.rows <= 30
    assert alike.rows >= 300


def test_one_group_tells_nothing() -> None:
    assert ClassPrior.choose([group(1.0, 0)]) == ClassPrior.choose([]) == ClassPrior()
    assert ClassPrior().groups == 0


def test_first_of_each() -> None:
    y = np.array([2, 2, 0, 2, 0, 0, 1])
    np.testing.assert_array_equal(first_of_each(y, 2), [1, 1, 1, 0, 1, 0, 1])
