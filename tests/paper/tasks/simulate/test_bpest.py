"""Simulated pulse and pressure: the truth is right, and the PPG tells the window."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from rdeepsense.distributions import Gaussian
from rdeepsense.paper.tasks import bpest
from rdeepsense.paper.tasks.task import Task

TASK = bpest.simulate(2_000, 0)


@pytest.fixture(scope="module")
def strangers() -> Task:
    """Each window of another record, so that rows are independent."""
    return bpest.simulate(3_000, 7, windows_per_record=1)


def is_right(truth: Gaussian, task: Task) -> bool:
    """Coverage at three levels, and mean z^2 in thirds of the true spread."""
    y, spread = task.y, task.truth.std
    z = (y - truth.mean) / truth.std
    third = np.digitize(spread, np.quantile(spread, [1 / 3, 2 / 3]))
    squares = [np.mean(z[third == part] ** 2) for part in range(3)]
    inside = [np.mean(np.abs(2 * truth.cdf(y) - 1) < level) for level in (0.5, 0.8, 0.95)]
    return (
        bool(np.allclose(squares, 1, atol=0.12))
        and bool(np.allclose(inside, (0.5, 0.8, 0.95), atol=0.02))
        and abs(z.mean()) < 0.05
    )


def test_truth_of_records_never_met(strangers: Task) -> None:
    truth = strangers.truth
    assert isinstance(truth, Gaussian)
    assert is_right(truth, strangers)
    assert not is_right(truth.widened(1.1), strangers)
    assert not is_right(truth.widened(0.9), strangers)
    flat = Gaussian(truth.mean, np.sqrt(np.mean(truth.var)))
    assert not is_right(flat, strangers)


def test_windows_of_a_record_share_what_no_ppg_shows() -> None:
    assert TASK.groups is not None
    assert np.array_equal(np.bincount(TASK.groups), np.full(100, 20))
    assert isinstance(TASK.truth, Gaussian)
    z = ((TASK.y - TASK.truth.mean) / TASK.truth.std).mean(axis=1)
    of_record = z.reshape(100, 20).mean(axis=1)
    # Of independent windows it would be 1/20.
    assert of_record.var() / z.var() > 0.7


def test_units_and_ranges_of_the_published_data() -> None:
    assert TASK.y.mean() == pytest.approx(88.7, abs=4)
    assert TASK.y.std() == pytest.approx(25.0, abs=3)
    assert np.mean((TASK.y < 50) | (TASK.y > 200)) < 0.04
    assert np.median(TASK.y.max(axis=1)) == pytest.approx(131, abs=8)  # systole of the real data
    assert np.median(TASK.y.min(axis=1)) == pytest.approx(61, abs=6)  # diastole
    assert TASK.X.min() > 0
    assert TASK.X.max() < 4


def test_a_beat_rises_faster_than_it_falls() -> None:
    phase = np.linspace(-np.pi, np.pi, 2_001)[None]
    for bumps in (bpest.ABP_BUMPS, bpest.PPG_BUMPS):
        for stiffness in (-0.9, 0.0, 0.9):
            wave = bpest.pulse(phase, np.array([stiffness]), bumps)[0]
            assert abs(phase[0, wave.argmax()]) < 0.5
            above = phase[0, wave > (wave.min() + wave.max()) / 2]
            peak = phase[0, wave.argmax()]
            assert above.max() - peak > peak - above.min()
            assert 0.8 < wave.max() - wave.min() < 1.3


def test_the_ppg_tells_the_window() -> None:
    """The truth is one given the PPG only if the PPG determines what it depends on."""
    rng = np.random.default_rng(0)
    window = bpest.simulated_windows(np.arange(10), rng)
    waves = bpest.ppg(window).astype(np.float32)
    for row, wave in enumerate(waves):
        real = np.array([part[row] for part in window])

        def misfit(guess: np.ndarray, wave: np.ndarray = wave) -> np.ndarray:
            return bpest.ppg(bpest.Window(*guess[:, None]))[0] - wave

        start = real + 0.05 * rng.standard_normal(len(real))
        found = least_squares(misfit, start, xtol=1e-12, ftol=1e-12).x
        assert np.allclose(found, real, atol=1e-3)
