"""Uncertain logits: the probit correction and mutual information."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from rdeepsense import Categorical
from rdeepsense.uncertainty.laplace import mutual_information, probit

SURE = Categorical([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])


def test_no_variance_changes_nothing() -> None:
    np.testing.assert_allclose(probit(SURE, np.zeros((3, 2))).probs, SURE.probs, rtol=1e-12)
    np.testing.assert_allclose(mutual_information(SURE, np.zeros((3, 2))), 0.0, atol=1e-12)


def test_two_classes_against_the_integral() -> None:
    """MacKay's sigmoid(m / sqrt(1 + pi v / 8)) is within 0.02 of the mean of sigmoid(N(m, v))."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for m in (0.3, 1.0, 3.0):
        for v in (0.1, 1.0, 4.0):
            # Logits +-m/2 with v/2 each: their difference is N(m, v), and each is half of it.
            dist = Categorical(special.softmax([[m / 2, -m / 2]], axis=-1))
            exact = special.expit(m + np.sqrt(v) * nodes) @ weights / weights.sum()
            found = probit(dist, np.full((1, 2), v)).probs[0, 0]
            assert found == pytest.approx(exact, abs=0.02)


def test_doubt_flattens_and_keeps_the_order() -> None:
    doubtful = probit(SURE, np.full((3, 2), 5.0))
    assert (doubtful.entropy() >= SURE.entropy() - 1e-12).all()
    np.testing.assert_array_equal(doubtful.mode, SURE.mode)


def test_mutual_information_of_two_opposed_opinions() -> None:
    """Logits of huge variance are sure of one class or the other by turns: log 2."""
    found = mutual_information(Categorical([[0.5, 0.5]]), np.full((1, 2), 1e8))
    assert found[0] == pytest.approx(np.log(2), abs=0.01)


def test_mutual_information_for_small_variances() -> None:
    """1/2 sum_k v_k p_k (1 - p_k), the second order in the logits."""
    dist = Categorical([[0.6, 0.3, 0.1]])
    variance = np.array([[0.01, 0.02, 0.01]])
    second_order = 0.5 * np.sum(variance * dist.probs * (1 - dist.probs))
    assert mutual_information(dist, variance)[0] == pytest.approx(second_order, rel=0.2)


def test_rows_do_not_depend_on_their_company() -> None:
    rng = np.random.default_rng(0)
    dist = Categorical(rng.dirichlet(np.ones(4), 1_500))
    variance = rng.random((1_500, 4))
    whole = mutual_information(dist, variance)
    np.testing.assert_array_equal(
        whole[1_200:1_210], mutual_information(dist[1_200:1_210], variance[1_200:1_210])
    )
    assert (whole >= 0).all()
