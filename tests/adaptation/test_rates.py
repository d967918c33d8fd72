"""The mixture of rates on streams whose truth is known."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.stats import norm

from rdeepsense.adaptation.rates import (
    MOST_KEPT,
    SHARE,
    Filters,
    Outlook,
    Rates,
    experts,
    prior_weights,
    regret_bound,
)
from rdeepsense.errors import InputError

FEATURES = 5


def streamed(
    errors: np.ndarray, psi: np.ndarray, rates: Rates
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Filters]:
    """Matched log likelihood, that of the true mixture and of the frozen model, and the end."""
    state = Filters.start(psi.shape[1], errors.shape[1], rates)
    matched, mixed, frozen = [], [], []
    for row, error in zip(psi, errors, strict=True):
        variance = np.ones(len(error))
        outlook = state.outlook(row, rates)
        shift, factor = state.matched(outlook, variance)
        matched.append(norm.logpdf(error, shift, factor).sum())
        moved, spread = experts(outlook)
        logs = norm.logpdf(error, moved, spread).sum(-1)
        mixed.append(np.log(np.sum(state.weights * np.exp(logs))))
        frozen.append(norm.logpdf(error).sum())
        state = state.observed(row, error, rates.within, logs, rates)
    return np.array(matched), np.array(mixed), np.array(frozen), state


def rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    psi = np.c_[rng.normal(size=(count, FEATURES - 1)), np.ones(count)]
    return psi, rng.normal(size=(count, 1))


def test_before_any_label_it_is_nearly_the_frozen_model() -> None:
    state = Filters.start(FEATURES, 2, Rates())
    outlook = state.outlook(np.ones(FEATURES), Rates())
    assert (outlook.shift == 0).all()
    assert (outlook.share == 1).all()
    shift, factor = state.matched(outlook, np.ones(2))
    assert (shift == 0).all()
    assert factor == pytest.approx(np.sqrt(0.96 + 0.03 * 4 + 0.01 * 16), rel=1e-12)


def test_drifting_offset_is_followed() -> None:
    psi, noise = rows(600, 0)
    drift = 4 * np.sin(np.arange(600) / 80)[:, None]
    matched, _, frozen, _ = streamed(drift + noise, psi, Rates(keep=(0.97,)))
    assert matched[100:].mean() > frozen[100:].mean() + 2.0
    assert matched[100:].mean() > norm.logpdf(noise).mean() - 0.35  # of who knows the drift


@pytest.mark.parametrize("keep", [(0.9,), (0.997,), (0.97, 0.997, 0.9999)])
def test_regret_without_drift(keep: tuple[float, ...]) -> None:
    psi, noise = rows(500, 1)
    _, mixed, frozen, _ = streamed(noise, psi, Rates(keep=keep))
    regret = (frozen - mixed).cumsum()
    bounds = [regret_bound(0.768, SHARE, t) for t in range(1, 501)]
    assert (regret <= np.array(bounds) + 1e-9).all()
    assert bounds[0] == pytest.approx(0.2640, abs=1e-4)
    assert bounds[-1] - bounds[0] < 499 * 0.0024


def test_matched_is_as_good_as_the_mixture_without_drift() -> None:
    psi, noise = rows(800, 2)
    matched, _, frozen, _ = streamed(noise, psi, Rates())
    assert (frozen - matched).mean() < 0.02


def test_moments_are_those_of_the_mixture() -> None:
    rng = np.random.default_rng(3)
    outlook = Outlook(np.array([[0.0, 0.0], [1.0, -2.0]]), np.array([1.0, 0.4]))
    state = Filters(
        Filters.start(3, 2, Rates()).corrections, rng.dirichlet(np.ones(6)).reshape(2, 3)
    )
    variance = np.array([1.5, 0.2])
    shift, factor = state.matched(outlook, variance)
    moved, spread = experts(outlook)
    weights = state.weights[:, :, None]
    mean = (weights * moved).sum((0, 1))
    second = (weights * (moved**2 + spread**2 * variance)).sum((0, 1))
    assert shift == pytest.approx(mean, rel=1e-12)
    assert factor**2 * variance == pytest.approx(second - mean**2, rel=1e-12)


@pytest.mark.parametrize("hostile", ["constant", "alternating", "random"])
def test_covariance_stays_between_nothing_and_the_prior(hostile: str) -> None:
    psi, noise = rows(1_000_000 if os.environ.get("RDEEPSENSE_LONG") else 1_500, 4)
    psi = psi * 30
    errors = {
        "constant": np.full_like(noise, 1e30),
        "alternating": 1e30 * (-1.0) ** np.arange(len(noise))[:, None],
        "random": 10 ** (60 * noise),
    }[hostile]
    rates = Rates(keep=(MOST_KEPT,))
    state = Filters.start(FEATURES, 1, rates)
    for row, error in zip(psi, errors, strict=True):
        state = state.observed(row, error, 1e-6, np.zeros((2, 3)), rates)
    own = state.corrections[0]
    assert np.isfinite(own.weights).all()
    spectrum = np.linalg.eigvalsh(own.covariance)
    assert spectrum[0] > 0.9 * (1 - MOST_KEPT)
    assert spectrum[-1] <= 1
    assert (own.covariance == own.covariance.astype(np.float32)).all()
    assert (own.covariance == own.covariance.T).all()


def test_prior_weights() -> None:
    assert prior_weights(2).sum() == pytest.approx(1)
    assert prior_weights(2)[0, 0] == pytest.approx(0.768)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", 0.0),
        ("within", 0.0),
        ("within", 1.1),
        ("between", -1.0),
        ("keep", (1.0,)),
        ("eta", 0),
    ],
)
def test_bad_rates_are_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=name):
        Rates(**{name: value})
