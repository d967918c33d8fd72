"""Numbers corrected by labels: Bayesian regression, bounds of harm, variances that only shrink."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.adaptation.last_layer import FARTHEST
from rdeepsense.adaptation.numbers import AdaptedNumbers
from rdeepsense.adaptation.prior import Prior

RNG = np.random.default_rng(0)
PHI = np.column_stack([RNG.normal(size=(30, 4)), np.ones(30)])
INFORMATION = np.eye(5) + 0.3
PRIOR = Prior(10.0, np.array([0.5]), np.array([0.8]), np.eye(1), np.array([[0.6]]), 7)


def test_labels_together_are_bayesian_regression() -> None:
    error, variance = 0.1 * RNG.normal(size=(30, 1)), 0.5 + RNG.random((30, 1))
    state = AdaptedNumbers.none(PRIOR, INFORMATION).observed(PHI, error, variance)
    start = np.linalg.inv(10 * INFORMATION)
    start[-1, -1] += 0.5
    noise = np.diag(1 / (0.8 * variance[:, 0]))
    covariance = np.linalg.inv(np.linalg.inv(start) + PHI.T @ noise @ PHI)
    np.testing.assert_allclose(state.covariance[0], covariance, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(state.weights, covariance @ PHI.T @ noise @ error, rtol=1e-7)
    ratio = np.diag(PHI @ covariance @ PHI.T) / np.diag(PHI @ start @ PHI.T)
    np.testing.assert_allclose(state.kept(PHI)[:, 0], 0.4 + 0.6 * ratio, rtol=1e-8)


def test_in_two_parts_it_is_the_same_to_the_bit() -> None:
    error, variance = RNG.normal(size=(30, 1)), np.ones((30, 1))
    none = AdaptedNumbers.none(PRIOR, INFORMATION)
    at_once = none.observed(PHI, error, variance)
    half = none.observed(PHI[:11], error[:11], variance[:11])
    both = half.observed(PHI[11:], error[11:], variance[11:])
    np.testing.assert_array_equal(both.weights, at_once.weights)
    np.testing.assert_array_equal(both.covariance, at_once.covariance)


def test_without_labels_nothing_changes() -> None:
    none = AdaptedNumbers.none(PRIOR, INFORMATION)
    assert not none.shift(PHI).any()
    np.testing.assert_array_equal(none.kept(PHI), 1.0)


@pytest.mark.parametrize("kind", ["huge", "alternating", "constant", "random"])
def test_absurd_labels_shift_by_a_bounded_amount(kind: str) -> None:
    rng = np.random.default_rng(1)
    phi = np.column_stack([5 * rng.normal(size=(400, 4)), np.ones(400)])
    error = {
        "huge": np.full(400, 1e30),
        "alternating": 1e30 * (-1.0) ** np.arange(400),
        "constant": np.full(400, 50.0),
        "random": 1e6 * rng.standard_cauchy(400),
    }[kind][:, None]
    none = AdaptedNumbers.none(PRIOR, INFORMATION)
    state, before = none, none.kept(PHI)
    for k in range(0, 400, 40):
        some = slice(k, k + 40)
        state = state.observed(phi[some], error[some], np.ones((40, 1)))
        gone = np.einsum("rf,fg,rg->r", PHI, none.covariance[0] - state.covariance[0], PHI)
        bound = FARTHEST * np.sqrt((k + 40) * gone)
        assert (np.abs(state.shift(PHI)[:, 0]) <= bound * (1 + 1e-9)).all()
        kept = state.kept(PHI)
        assert (kept <= before + 1e-12).all()
        assert (kept >= 0.4).all()
        before = kept
    assert np.linalg.eigvalsh(state.covariance[0]).min() > 0


def test_outputs_are_shifted_along_the_directions_alone() -> None:
    along = np.array([[0.6], [0.8]])
    prior = Prior(10.0, np.array([0.5]), np.array([0.8]), along, np.array([[0.2], [0.7]]))
    state = AdaptedNumbers.none(prior, INFORMATION).observed(
        PHI, RNG.normal(size=(30, 2)), np.ones((30, 2))
    )
    shift, kept = state.shift(PHI), state.kept(PHI)
    np.testing.assert_allclose(shift[:, 0] / 0.6, shift[:, 1] / 0.8)
    np.testing.assert_allclose((1 - kept[:, 0]) / 0.2, (1 - kept[:, 1]) / 0.7)
