"""Trackers: their identities hold to rounding on any sequence, their bounds on any scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mapie.regression import TimeSeriesRegressor
from sklearn.linear_model import LinearRegression

from rdeepsense.adaptation.rates import FARTHEST, Adaptive, Multiplicative, Proportional, ScaleFree

ALPHA = 0.1


def stretches(kind: str, steps: int, seed: int = 0) -> np.ndarray:
    """What would have held each label: alike, drifting, or as bad as can be."""
    rng = np.random.default_rng(seed)
    if kind == "alike":
        return rng.uniform(0.2, 2.0, steps)
    if kind == "drifting":
        return np.clip(np.exp(np.linspace(-1, 1, steps)) * rng.uniform(0.5, 1.5, steps), 0.2, 5)
    return np.where(np.arange(steps) // 50 % 2, 0.2, 5.0)


@pytest.mark.parametrize("kind", ["alike", "drifting", "alternating"])
@pytest.mark.parametrize("eta", [0.02, 0.3])
def test_multiplicative(kind: str, eta: float) -> None:
    needed = stretches(kind, 2_000)
    state, misses = Multiplicative(ALPHA, eta), 0
    for s in needed:
        misses += s > state.q
        state = state.after(s > state.q)
    rate = misses / len(needed)
    assert rate - ALPHA == pytest.approx(state.log_q / (eta * len(needed)), abs=1e-12)
    bound = (math.log(needed.max() / needed.min()) + eta) / (eta * len(needed))
    assert abs(rate - ALPHA) <= bound


def test_multiplicative_one_step_and_ends() -> None:
    state = Multiplicative(0.1, 0.05)
    assert state.after(True).q == pytest.approx(math.exp(0.045), rel=1e-15)
    assert state.after(False).log_q == pytest.approx(-0.005, rel=1e-15)
    for _ in range(200):
        state = Multiplicative(0.1, 1.0, state.log_q).after(True)
    assert state.log_q == FARTHEST


@pytest.mark.parametrize("kind", ["alike", "drifting", "alternating"])
def test_adaptive_as_published(kind: str) -> None:
    """alpha_{t+1} = alpha_t + gamma (alpha - err_t), written out."""
    levels, gamma = stretches(kind, 1_000) / 5, 0.03  # the level that would have held each label
    state, alpha_t, misses = Adaptive.start(ALPHA, gamma), ALPHA, 0
    for level in levels:
        missed = level > 1 - alpha_t
        assert state.level == min(max(1 - alpha_t, 0.0), 1.0)
        state = state.after(level > state.level)
        alpha_t, misses = alpha_t + gamma * (ALPHA - missed), misses + missed
        assert state.alpha_t == alpha_t
    rate = misses / len(levels)
    assert rate - ALPHA == pytest.approx((ALPHA - alpha_t) / (gamma * len(levels)), abs=1e-12)
    assert abs(rate - ALPHA) <= (0.9 + gamma) / (gamma * len(levels))


def test_adaptive_as_mapie_has_it() -> None:
    rng = np.random.default_rng(1)
    gamma, rows = 0.003, 60
    X, noise = rng.uniform(-1, 1, (400, 1)), rng.normal(size=400)
    y = 2 * X[:, 0] + noise * np.where(np.arange(400) < 250, 0.1, 0.4)  # it grows noisier
    line = LinearRegression().fit(X[:100], y[:100])
    peer = TimeSeriesRegressor(line, method="aci", cv="prefit").fit(X[100:250], y[100:250])
    state = Adaptive.start(ALPHA, gamma)
    for x, truth in zip(X[250 : 250 + rows, None], y[250:], strict=False):
        _, bounds = peer.predict(x, confidence_level=1 - ALPHA, allow_infinite_bounds=True)
        low, high = bounds[0, :, 0]
        state = state.after(not low < truth < high)
        peer.adapt_conformal_inference(x, np.array([truth]), gamma=gamma)
        assert state.alpha_t == pytest.approx(peer.current_alpha[ALPHA], abs=1e-9)
    assert 0 < state.alpha_t < 0.75 * ALPHA


@pytest.mark.parametrize("kind", ["alike", "drifting", "alternating"])
def test_proportional(kind: str) -> None:
    scores, eta = stretches(kind, 2_000), 0.1
    state, misses = Proportional(ALPHA, eta), 0
    for s in scores:
        misses += s > state.q
        state = state.after(s > state.q)
    rate = misses / len(scores)
    assert rate - ALPHA == pytest.approx(state.q / (eta * len(scores)), abs=1e-12)
    assert abs(rate - ALPHA) <= (scores.max() + eta) / (eta * len(scores))


def test_integrator_by_hand() -> None:
    state = Proportional(0.1, 0.2, strength=3.0, saturation=2.0).after(True).after(True)
    angle = 1.8 * math.log(3) / (3 * 2.0)
    assert state.q == pytest.approx(2 * 0.2 * 0.9 + 3.0 * math.tan(angle), rel=1e-14)
    full = Proportional(0.1, 0.2, saturation=0.01).after(True).after(True)
    assert full.q == math.inf
    assert full.after(False).after(False).q == math.inf


def test_integrator_holds_where_proportion_is_too_slow() -> None:
    scores = np.linspace(0, 100, 2_000)  # rising faster than eta alone can follow
    rates = []
    for saturation in (None, 0.1):
        state, misses = Proportional(ALPHA, 0.01, saturation=saturation), 0
        for s in scores:
            misses += s > state.q
            state = state.after(s > state.q)
        rates.append(misses / len(scores))
    assert rates[0] > 0.9
    assert rates[1] < 0.35


def test_scale_free() -> None:
    state = ScaleFree(0.1, 0.5).after(True).after(False)
    assert state.q == pytest.approx(0.5 * (1 - 0.1 / math.sqrt(0.82)), rel=1e-14)
    scores = stretches("alternating", 4_000)
    state, misses = ScaleFree(ALPHA, 5.0), 0
    for s in scores:
        misses += s > state.q
        state = state.after(s > state.q)
    assert abs(misses / len(scores) - ALPHA) < 0.05
