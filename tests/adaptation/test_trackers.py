"""The tracker of a quantile: its identity is exact on any sequence, its bound on any scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rdeepsense.adaptation.rates import FARTHEST, Multiplicative

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
