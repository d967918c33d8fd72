"""Simulated gas sensors: the truth is right, and sixteen readings tell the gases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from rdeepsense.distributions import StudentT
from rdeepsense.paper.tasks import gassen

TASK = gassen.simulate(20_000, 3)


def is_right(truth: StudentT, y: np.ndarray) -> bool:
    """Coverage at four levels for both gases, in thirds of the stated scale."""
    reached = np.abs(2 * truth.cdf(y) - 1)
    levels = np.array([0.5, 0.8, 0.95, 0.99])
    for gas in range(2):
        scale = truth.scale[:, gas]
        third = np.digitize(scale, np.quantile(scale, [1 / 3, 2 / 3]))
        for part in range(3):
            inside = [np.mean(reached[third == part, gas] < level) for level in levels]
            if np.any(np.abs(inside - levels) > 4 * np.sqrt(levels * (1 - levels) / 6_000)):
                return False
    return True


def test_truth_of_the_reference() -> None:
    truth = TASK.truth
    assert isinstance(truth, StudentT)
    assert is_right(truth, TASK.y)
    assert not is_right(truth.widened(1.1), TASK.y)
    assert not is_right(truth.widened(0.9), TASK.y)
    assert not is_right(StudentT(truth.loc, truth.std, 100.0), TASK.y)


def test_units_and_ranges_of_the_published_data() -> None:
    assert TASK.y.mean() == pytest.approx(94.6, abs=8)
    assert TASK.y.std() == pytest.approx(145.2, abs=10)
    assert isinstance(TASK.truth, StudentT)
    ppm = TASK.truth.loc
    assert ppm.min() == 0
    assert np.all(ppm.max(axis=0) <= gassen.HIGHEST)
    assert np.all(ppm.max(axis=0) > 0.95 * gassen.HIGHEST)
    clean = np.all(ppm < 0.01 * gassen.HIGHEST, axis=1)
    assert 0.05 < clean.mean() < 0.3
    assert TASK.X.min() > 0


def test_the_array_is_the_same_whatever_the_seed() -> None:
    ppm, drift = np.array([[200.0, 10.0]]), np.array([0.3])
    assert gassen.readings(ppm, drift)[0, :2] == pytest.approx([1933.50, 3426.29], abs=0.01)


def test_sensors_saturate_answer_to_both_gases_and_drift() -> None:
    def read(co: float, ethylene: float, drift: float = 0.0) -> np.ndarray:
        return gassen.readings(np.array([[co, ethylene]]), np.array([drift]))[0]

    assert np.all(read(533, 0) - read(433, 0) < (read(100, 0) - read(0, 0)) / 2)
    assert np.all(read(300, 0) > read(0, 0))
    assert np.all(read(0, 10) > read(0, 0))
    change = read(0, 0, 1.0) / read(0, 0) - 1
    assert change.min() < -0.02
    assert change.max() > 0.1


def test_sixteen_readings_tell_the_gases_and_the_drift() -> None:
    rng = np.random.default_rng(0)
    real = np.column_stack([gassen.HIGHEST * rng.random((20, 2)), rng.uniform(-0.9, 0.9, 20)])
    unit = np.append(gassen.HIGHEST, 1.0)
    for row in real:
        wanted = gassen.readings(row[None, :2], row[2:]).astype(np.float32)[0]

        def misfit(guess: np.ndarray, wanted: np.ndarray = wanted) -> np.ndarray:
            ppm, drift = (guess * unit)[None, :2], guess[2:]
            return np.log(gassen.readings(ppm, drift)[0] / wanted)

        bounds = ([0, 0, -1], [1, 1, 1])
        found = least_squares(misfit, [0.5, 0.5, 0.0], bounds=bounds, xtol=1e-12, ftol=1e-14).x
        assert found == pytest.approx(row / unit, abs=1e-3)


def test_steps_last_and_groups_are_ten_minutes() -> None:
    assert TASK.groups is not None
    assert np.all(np.bincount(TASK.groups)[:-1] * gassen.SECONDS == 600)
    assert isinstance(TASK.truth, StudentT)
    jump = np.abs(np.diff(TASK.truth.loc[:, 0])) > 20
    started = np.flatnonzero(jump & ~np.roll(jump, 1))
    assert np.all(np.diff(started) % gassen.STEP == 0)
