"""The alarm: ranks are uniform, capital is a martingale, false alarms are as rare as promised."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.integrate import quad

from rdeepsense.adaptation import rates
from rdeepsense.adaptation.rates import Alarm
from rdeepsense.errors import InputError

LONG = bool(os.environ.get("RDEEPSENSE_LONG"))


def rang(test: Alarm, scores: np.ndarray, seed: int, rate: float = 0.01) -> int | None:
    for row, score in enumerate(scores, 1):
        test = test.after(float(score), seed)
        if test.rings(rate):
            return row
    return None


def test_bets_are_densities() -> None:
    for k in range(len(rates.BETS)):
        mass = quad(lambda p, k=k: float(np.exp(rates.bets(p)[k])), 0, 1, limit=200)[0]
        assert mass == pytest.approx(1, abs=1e-3)


def test_ranks_by_hand() -> None:
    """Three scores above, one beside: p lies between 3/6 and 5/6 of the way."""
    test = Alarm(np.array([1.0, 2.0]), np.array([1, 1, 3]), rates.BETS)
    u = rates.uniform(7, 0)
    p = (3 + u * 2) / 6
    expected = np.log(rates.BETS @ np.exp(rates.bets(p)))
    after = test.after(1.5, 7)
    assert after.log_capital == pytest.approx(expected, rel=1e-12)
    assert after.counts.tolist() == [1, 2, 3]
    assert test.counts.tolist() == [1, 1, 3]


def test_draws_are_uniform() -> None:
    drawn = np.array([rates.uniform(3, step) for step in range(5_000)])
    assert abs(drawn.mean() - 0.5) < 0.015
    assert np.abs(np.sort(drawn) - np.arange(5_000) / 5_000).max() < 0.025
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.04


@pytest.mark.parametrize("reference", [40, 512])
def test_false_alarms(reference: int) -> None:
    """At a rate of 0.1, in streams of 200 rows; the long form is the documented one."""
    streams, rows, rate = (200, 1_000, 0.01) if LONG else (60, 200, 0.1)
    rng = np.random.default_rng(0)
    found = 0
    for seed in range(streams):
        test = Alarm.start(rng.standard_gamma(2.0, reference))
        found += rang(test, rng.standard_gamma(2.0, rows), seed, rate) is not None
    assert found <= rate * streams + 3 * np.sqrt(rate * streams) + 1


def test_drift_is_found() -> None:
    rng = np.random.default_rng(1)
    first, later, narrower = [], [], []
    for seed in range(15):
        test = Alarm.start(np.abs(rng.normal(size=512)))
        first.append(rang(test, np.abs(2 + rng.normal(size=100)), seed) or 999)
        change = np.r_[np.abs(rng.normal(size=150)), np.abs(2 + rng.normal(size=100))]
        later.append((rang(test, change, seed) or 999) - 150)
        narrower.append(rang(test, np.abs(0.2 * rng.normal(size=300)), seed) or 999)
    assert np.median(first) < 20
    assert 0 < np.median(later) < 40
    assert np.median(narrower) < 100


def test_it_stays_rung_and_finite() -> None:
    test = Alarm.start(np.random.default_rng(2).normal(size=256))
    for step in range(300):
        test = test.after(1e300 if step < 150 else 0.0)
    assert test.rings(1e-6)
    for score in (np.inf, -np.inf, 1e-300):
        test = test.after(score)
    assert np.isfinite(test.log_capital)
    assert test.weights.sum() == pytest.approx(1)


def test_too_few_scores_are_refused() -> None:
    with pytest.raises(InputError, match="32 finite scores"):
        Alarm.start(np.arange(10.0))
    with pytest.raises(InputError, match="finite"):
        Alarm.start(np.full(100, np.nan))
