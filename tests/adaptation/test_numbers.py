"""Numbers corrected by labels: Bayesian regression, bounds of harm, variances that only shrink."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.adaptation.corrections import AdaptedNumbers, Prior
from rdeepsense.adaptation.last_layer import FARTHEST
from rdeepsense.arrays import Floats

INFORMATION = np.eye(5) + 0.3
PRIOR = Prior(10.0, np.array([0.5]), np.array([0.8]), np.eye(1), np.array([[0.6]]), 7)


@pytest.fixture
def phi(rng: np.random.Generator) -> Floats:
    """The last hidden layer of thirty rows: four features and a one."""
    return np.column_stack([rng.normal(size=(30, 4)), np.ones(30)])


def test_labels_together_are_bayesian_regression(phi: Floats, rng: np.random.Generator) -> None:
    error, variance = 0.1 * rng.normal(size=(30, 1)), 0.5 + rng.random((30, 1))
    state = AdaptedNumbers.none(PRIOR, INFORMATION).observed(phi, error, variance)
    start = np.linalg.inv(10 * INFORMATION)
    start[-1, -1] += 0.5
    noise = np.diag(1 / (0.8 * variance[:, 0]))
    covariance = np.linalg.inv(np.linalg.inv(start) + phi.T @ noise @ phi)
    np.testing.assert_allclose(state.covariance[0], covariance, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(state.weights, covariance @ phi.T @ noise @ error, rtol=1e-7)
    ratio = np.diag(phi @ covariance @ phi.T) / np.diag(phi @ start @ phi.T)
    np.testing.assert_allclose(state.kept(phi)[:, 0], 0.4 + 0.6 * ratio, rtol=1e-8)


def test_in_two_parts_it_is_the_same_to_the_bit(phi: Floats, rng: np.random.Generator) -> None:
    error, variance = rng.normal(size=(30, 1)), np.ones((30, 1))
    none = AdaptedNumbers.none(PRIOR, INFORMATION)
    at_once = none.observed(phi, error, variance)
    half = none.observed(phi[:11], error[:11], variance[:11])
    both = half.observed(phi[11:], error[11:], variance[11:])
    np.testing.assert_array_equal(both.weights, at_once.weights)
    np.testing.assert_array_equal(both.covariance, at_once.covariance)


def test_without_labels_nothing_changes(phi: Floats) -> None:
    none = AdaptedNumbers.none(PRIOR, INFORMATION)
    assert not none.shift(phi).any()
    np.testing.assert_array_equal(none.kept(phi), 1.0)


@pytest.mark.parametrize("kind", ["huge", "alternating", "constant", "random"])
def test_absurd_labels_shift_by_a_bounded_amount(
    kind: str, phi: Floats, rng: np.random.Generator
) -> None:
    far = np.column_stack([5 * rng.normal(size=(400, 4)), np.ones(400)])
    error = {
        "huge": np.full(400, 1e30),
        "alternating": 1e30 * (-1.0) ** np.arange(400),
        "constant": np.full(400, 50.0),
        "random": 1e6 * rng.standard_cauchy(400),
    }[kind][:, None]
    none = AdaptedNumbers.none(PRIOR, INFORMATION)
    state, before = none, none.kept(phi)
    for k in range(0, 400, 40):
        some = slice(k, k + 40)
        state = state.observed(far[some], error[some], np.ones((40, 1)))
        gone = np.einsum("rf,fg,rg->r", phi, none.covariance[0] - state.covariance[0], phi)
        bound = FARTHEST * np.sqrt((k + 40) * gone)
        assert (np.abs(state.shift(phi)[:, 0]) <= bound * (1 + 1e-9)).all()
        kept = state.kept(phi)
        assert (kept <= before + 1e-12).all()
        assert (kept >= 0.4).all()
        before = kept
    assert np.linalg.eigvalsh(state.covariance[0]).min() > 0


def test_outputs_are_shifted_along_the_directions_alone(
    phi: Floats, rng: np.random.Generator
) -> None:
    along = np.array([[0.6], [0.8]])
    prior = Prior(10.0, np.array([0.5]), np.array([0.8]), along, np.array([[0.2], [0.7]]))
    state = AdaptedNumbers.none(prior, INFORMATION).observed(
        phi, rng.normal(size=(30, 2)), np.ones((30, 2))
    )
    shift, kept = state.shift(phi), state.kept(phi)
    np.testing.assert_allclose(shift[:, 0] / 0.6, shift[:, 1] / 0.8)
    np.testing.assert_allclose((1 - kept[:, 0]) / 0.2, (1 - kept[:, 1]) / 0.7)
