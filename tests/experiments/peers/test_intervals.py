"""Predictions that are intervals alone: their figures are those of the same distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rdeepsense import Gaussian, metrics
from rdeepsense.errors import InputError
from rdeepsense.experiments.peers.intervals import UNKNOWN, Intervals

rng = np.random.default_rng(0)
DIST = Gaussian(rng.normal(size=50), np.exp(rng.normal(size=50)))
Y = DIST.sample(1, 1)[0]


def test_figures_are_those_of_the_distribution() -> None:
    ours, found = metrics.evaluate(DIST, Y), Intervals.ask(DIST.interval, DIST.mean, 50)
    figures = found.figures(Y)
    assert figures.keys() == ours.keys()
    for name, value in figures.items():
        assert value is None if name in UNKNOWN else value == pytest.approx(ours[name])
    observed = metrics.calibration_curve(DIST, Y)[1]
    assert found.inside(Y) == np.rint(50 * observed).astype(int).tolist()


def test_without_a_point_there_is_no_error() -> None:
    figures = Intervals.ask(lambda c: np.stack(DIST.interval(c), 1), None, 50).figures(Y)
    assert (figures["rmse"], figures["mae"]) == (None, None)
    assert figures["coverage_90"] == pytest.approx(metrics.coverage(DIST, Y, 0.9))


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
