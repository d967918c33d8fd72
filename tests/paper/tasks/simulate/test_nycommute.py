"""Simulated taxi trips: the mixture is a density, and the trips follow it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from rdeepsense.paper.tasks import nycommute
from rdeepsense.paper.tasks.nycommute import BROKEN, TripMinutes

TASK = nycommute.simulate(100_000, 3)


def test_density_cdf_mean_and_std_agree() -> None:
    trip = TripMinutes(12.0, 0.3)
    assert trip.shape == ()

    def density(y: float) -> float:
        return float(np.exp(trip.log_prob(y)))

    def integral(power: int, low: float, high: float) -> float:
        value, _ = integrate.quad(lambda y: y**power * density(y), low, high, limit=500)
        return float(value)

    bounds = [0, 5, 12, 40, 200, 1380, 1440, 1e5]
    parts = np.array([[integral(p, *pair) for p in range(3)] for pair in pairwise(bounds)])
    assert parts[:, 0].sum() == pytest.approx(1, abs=1e-7)
    assert trip.mean == pytest.approx(parts[:, 1].sum(), rel=1e-6)
    assert trip.std**2 == pytest.approx(parts[:, 2].sum() - parts[:, 1].sum() ** 2, rel=1e-6)
    assert trip.cdf(np.array(bounds[1:])) == pytest.approx(parts[:, 0].cumsum(), abs=1e-7)


def test_impossible_times() -> None:
    trip = TripMinutes([12.0, 12.0], 0.3)
    assert np.array_equal(trip.log_prob([0.0, -3.0]), [-np.inf, -np.inf])
    assert np.array_equal(trip.cdf([0.0, -3.0]), [0.0, 0.0])
    # 24-hour trips have the uniform density, and hardly any other.
    assert trip.log_prob([1400.0, 1439.0]) == pytest.approx(np.log(BROKEN / 60), abs=1e-3)


def test_trips_follow_the_truth() -> None:
    truth = TASK.truth
    assert isinstance(truth, TripMinutes)

    def farthest(changed: TripMinutes) -> float:
        """Greatest distance of the integral transform from uniform, in fifths of the spread."""
        u = changed.cdf(TASK.y)
        fifth = np.digitize(truth.spread, np.quantile(truth.spread, [0.2, 0.4, 0.6, 0.8]))
        levels = np.linspace(0.05, 0.95, 19)
        shares = np.array([[np.mean(u[fifth == k] < q) for q in levels] for k in range(5)])
        return float(np.abs(shares - levels).max())

    assert farthest(truth) < 0.018
    assert farthest(TripMinutes(truth.median, 1.1 * truth.spread)) > 0.022
    assert farthest(TripMinutes(truth.median, 0.9 * truth.spread)) > 0.022
    assert farthest(TripMinutes(1.02 * truth.median, truth.spread)) > 0.022


def test_sampled_like_simulated() -> None:
    truth = TASK.truth
    assert isinstance(truth, TripMinutes)
    drawn = truth.sample(1, 5)[0]
    levels = [0.01, 0.1, 0.5, 0.9, 0.99]
    assert np.quantile(drawn, levels) == pytest.approx(np.quantile(TASK.y, levels), rel=0.05)


def test_corrupted_trips() -> None:
    day_long = TASK.y >= 1380
    assert day_long.mean() == pytest.approx(BROKEN, abs=4 * np.sqrt(BROKEN / TASK.y.size))
    assert TASK.y.max() <= 1440
    assert TASK.y.min() > 0
    assert TASK.y.mean() == pytest.approx(15, abs=1.5)
    assert TASK.y.std() == pytest.approx(52.8, abs=6)


def test_a_city() -> None:
    lon, lat, hour = TASK.X[:, 0], TASK.X[:, 1], TASK.X[:, 4]
    assert -74.3 < lon.min() < lon.max() < -73.6
    assert 40.4 < lat.min() < lat.max() < 41.0
    assert 0 <= hour.min() < hour.max() <= 24
    trip = np.array([-73.99, 40.74, -73.97, 40.765])
    minutes = {
        h: float(nycommute.truth_at(np.append(trip, h)[None]).median[0]) for h in (4.0, 17.5)
    }
    assert minutes[17.5] > 1.5 * minutes[4.0]
    midnight = [nycommute.truth_at(np.append(trip, h)[None]).median[0] for h in (0.0, 24.0)]
    assert midnight[0] == pytest.approx(midnight[1])


def test_days_share_their_luck() -> None:
    assert TASK.groups is not None
    assert isinstance(TASK.truth, TripMinutes)
    usual = TASK.y < 1380
    z = (np.log(TASK.y) - np.log(TASK.truth.median)) / TASK.truth.spread
    days = TASK.groups.max() + 1
    means = np.array([np.median(z[(TASK.groups == day) & usual]) for day in range(days)])
    # A median of 250 independent z varies by pi / 2 / 250.
    assert means.var() == pytest.approx(nycommute.DAY_SHARE + np.pi / 500, rel=0.3)
