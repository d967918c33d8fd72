"""Weights of experts: one step by hand, and the bound of the regret on any sequence."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.adaptation.rates import regret_bound, updated


def test_one_step() -> None:
    prior = np.array([0.8, 0.2])
    found = updated(prior, np.log([1.0, 3.0]), prior, 0.1)
    assert found == pytest.approx([0.9 * 0.8 / 1.4 + 0.08, 0.9 * 0.6 / 1.4 + 0.02], rel=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_regret_is_bounded(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(5))
    share, steps = rng.uniform(0, 0.2), int(rng.integers(1, 300))
    logs = rng.normal(scale=rng.uniform(0.1, 30), size=(steps, 5))
    weights, total = prior, 0.0
    for each in logs:
        total += np.log(weights @ np.exp(each - each.max())) + each.max()
        weights = updated(weights, each, prior, share)
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert (weights >= share * prior * (1 - 1e-12)).all()
    for expert in range(5):
        bound = regret_bound(prior[expert], share, steps)
        assert logs[:, expert].sum() - total <= bound + 1e-9


def test_bound_is_reached() -> None:
    """All others give nothing: then the mixture loses exactly the bound."""
    prior, share, steps = np.array([0.3, 0.7]), 0.05, 40
    weights, total = prior, 0.0
    logs = np.array([0.0, -2_000.0])
    for _ in range(steps):
        total += np.log(weights @ np.exp(logs))
        weights = updated(weights, logs, prior, share)
    assert -total == pytest.approx(regret_bound(0.3, share, steps), rel=1e-12)
