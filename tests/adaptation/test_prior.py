"""The prior of how groups differ: known truths are found, and no effect costs nothing."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.adaptation.choose import choose_prior
from rdeepsense.adaptation.corrections import AdaptedNumbers, GroupStream, Offsets, Prior

ROWS = 1_000.0


def groups(
    between: float,
    within: float,
    count: int = 80,
    rows: int = 20,
    weights: float = 0.0,
    outputs: int = 1,
    seed: int = 0,
) -> list[GroupStream]:
    """Groups with an offset in common to all outputs, noise, and weights of their own."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        phi = np.column_stack([rng.normal(size=(rows, 4)), np.ones(rows)])
        error = np.sqrt(between) * rng.normal() + np.sqrt(within) * rng.normal(size=(rows, outputs))
        error += phi @ (weights * rng.normal(size=(5, 1)))
        variance = np.full((rows, outputs), between + within)
        found.append(GroupStream(phi, error, variance, ROWS * np.eye(5), ROWS))
    return found


@pytest.mark.parametrize(("between", "within"), [(1.0, 0.25), (0.3, 0.7), (4.0, 1.0)])
def test_between_and_within_are_near_the_truth(between: float, within: float) -> None:
    prior = choose_prior(groups(between, within, 200))
    assert prior.groups == 200
    assert prior.rows >= 1e3
    assert prior.between[0] == pytest.approx(between, rel=0.3)
    assert prior.within[0] * (between + within) == pytest.approx(within, rel=0.1)
    # With five labels of noise `within`, what is left of the offset is the rest of the variance.
    left = within + between / (1 + 5 * between / within)
    state = AdaptedNumbers.none(prior, np.eye(5)).observed(
        *(part[:5] for part in _one(between + within))
    )
    kept = float(state.kept(np.eye(5)[-1:])[0, 0])
    assert kept == pytest.approx(left / (between + within), abs=0.08)


def _one(variance: float) -> tuple[np.ndarray, ...]:
    phi = np.column_stack([np.random.default_rng(1).normal(size=(5, 4)), np.ones(5)])
    return phi, np.zeros((5, 1)), np.full((5, 1), variance)


def test_without_an_effect_adaptation_is_next_to_nothing() -> None:
    streams = groups(0.0, 1.0, 100)
    prior = choose_prior(streams)
    assert prior.between[0] < 0.01
    assert prior.shares.max() < 0.1
    gained = []
    for stream in groups(0.0, 1.0, 100, seed=1):
        state = AdaptedNumbers.none(prior, np.eye(5)).observed(
            stream.phi[:5], stream.error[:5], stream.variance[:5]
        )
        left = stream.error[5:] - state.shift(stream.phi[5:])
        kept = state.kept(stream.phi[5:])
        gained.append(np.mean(left**2 / kept + np.log(kept) - stream.error[5:] ** 2) / 2)
    assert np.mean(gained) < 0.005  # nats a row


def test_weights_of_their_own_ask_for_few_rows() -> None:
    prior = choose_prior(groups(0.5, 0.2, weights=0.4))
    assert 1 / prior.rows == pytest.approx(0.4**2, rel=0.9)
    assert choose_prior(groups(0.5, 0.2)).rows >= 1e3


def test_an_offset_in_common_is_one_direction_of_many_outputs() -> None:
    prior = choose_prior(groups(1.0, 0.5, outputs=12))
    assert prior.directions.shape == (12, 1)
    np.testing.assert_allclose(prior.directions, 12**-0.5, atol=0.03)
    # Noise of outputs is independent here, so one label of all tells the offset almost exactly.
    assert prior.between[0] == pytest.approx(12.0, rel=0.4)
    np.testing.assert_allclose(prior.shares.sum(1), 1 / 1.5, atol=0.1)


def test_outputs_with_offsets_of_their_own_have_directions_of_their_own() -> None:
    first, second = groups(1.0, 0.3, seed=1), groups(1.0, 0.3, seed=2)
    streams = [
        GroupStream(
            a.phi,
            np.hstack([a.error, b.error]),
            np.hstack([a.variance, b.variance]),
            a.information,
            a.rows,
        )
        for a, b in zip(first, second, strict=True)
    ]
    prior = choose_prior(streams)
    assert prior.directions.shape == (2, 2)
    np.testing.assert_allclose(prior.directions.T @ prior.directions, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(prior.shares.sum(1), 1 / 1.3, atol=0.12)


def test_the_likelihood_is_that_of_one_row_after_the_other() -> None:
    streams = groups(0.7, 0.4, count=3, rows=6, weights=0.3)
    offsets = Offsets.of(streams, np.ones(1))
    prior = Prior(30.0, np.array([0.5]), np.array([0.8]), np.eye(1), np.zeros((1, 1)))
    total = 0.0
    for stream in streams:
        state = AdaptedNumbers.none(prior, np.eye(5))
        for phi, error, variance in zip(stream.phi, stream.error, stream.variance, strict=True):
            spread = float(phi @ state.covariance[0] @ phi) + 0.8 * variance[0]
            left = float(error[0] - phi @ state.weights[:, 0])
            assert abs(left) < 3 * np.sqrt(spread)  # none is clipped
            total -= 0.5 * (np.log(spread) + left**2 / spread)
            state = state.observed(phi[None], error[None], variance[None])
    assert offsets.likelihood(30.0, 0.5, 0.8) == pytest.approx(total, rel=1e-10)


def test_groups_of_different_lengths_count_their_own_rows() -> None:
    long, short = groups(0.7, 0.4, 1, 9)[0], groups(0.7, 0.4, 1, 4, seed=3)[0]
    both = Offsets.of([long, short], np.ones(1)).likelihood(30.0, 0.5, 0.8)
    each = [Offsets.of([one], np.ones(1)).likelihood(30.0, 0.5, 0.8) for one in (long, short)]
    assert both == pytest.approx(sum(each), rel=1e-12)


@pytest.mark.parametrize("outputs", [1, 3, 20])
def test_without_groups_the_defaults_keep_the_variance(outputs: int) -> None:
    prior = choose_prior(groups(1.0, 1.0, count=1, outputs=outputs))
    assert prior.groups == 0
    assert prior.rows == 200
    assert prior.directions.shape == (outputs, min(outputs, 3) if outputs < 9 else 1)
    np.testing.assert_allclose(np.linalg.norm(prior.directions, axis=0), 1)
    assert not prior.shares.any()
    np.testing.assert_allclose(prior.between, 0.5 if outputs < 9 else 10.0)
    assert choose_prior([]).groups == 0
