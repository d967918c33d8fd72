"""Predictions that are intervals alone: their figures are those of the same distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rdeepsense import Gaussian, metrics
from rdeepsense.comparison.own_model import UNKNOWN, Intervals
from rdeepsense.errors import InputError


def drawn(rng: np.random.Generator) -> tuple[Gaussian, np.ndarray]:
    """Return a distribution of 50 rows and numbers that follow it."""
    dist = Gaussian(rng.normal(size=50), np.exp(rng.normal(size=50)))
    return dist, dist.sample(1, rng)[0]


def test_figures_are_those_of_the_distribution(rng: np.random.Generator) -> None:
    dist, y = drawn(rng)
    ours, found = metrics.evaluate(dist, y), Intervals.ask(dist.interval, dist.mean, 50)
    figures = found.figures(y)
    assert figures.keys() == ours.keys()
    for name, value in figures.items():
        assert value is None if name in UNKNOWN else value == pytest.approx(ours[name])
    observed = metrics.calibration_curve(dist, y)[1]
    assert found.inside(y) == np.rint(50 * observed).astype(int).tolist()


def test_without_a_point_there_is_no_error(rng: np.random.Generator) -> None:
    dist, y = drawn(rng)
    figures = Intervals.ask(lambda c: np.stack(dist.interval(c), 1), None, 50).figures(y)
    assert (figures["rmse"], figures["mae"]) == (None, None)
    assert figures["coverage_90"] == pytest.approx(metrics.coverage(dist, y, 0.9))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, 50)), r"coverage 0.1 has shape \(3, 50\); needed: \(low, high\)"),
        ((np.ones(50), np.zeros(50)), "low that is not below"),
        ((np.full(50, np.nan), np.ones(50)), "low that is not below"),
    ],
)
def test_refusals(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Intervals.ask(lambda coverage: given, None, 50)
