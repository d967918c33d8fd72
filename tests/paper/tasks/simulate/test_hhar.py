"""Simulated body motion: Bayes is right for users never met, and the spectra tell theta."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from rdeepsense import metrics
from rdeepsense.distributions import Categorical
from rdeepsense.paper.tasks import hhar
from rdeepsense.paper.tasks.hhar import spectra


def movements(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return activities and latent numbers, each row of another user: rows are independent."""
    return hhar.movements(np.arange(60_000), rng)


def is_right(truth: Categorical, activity: np.ndarray) -> bool:
    """Each class as frequent as stated, among rows of like stated probability."""
    for k in range(len(hhar.CLASSES)):
        p = truth.probs[:, k]
        for low, high in ((0.02, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.98)):
            rows = (p > low) & (p <= high)
            error = np.sqrt(np.mean(p[rows] * (1 - p[rows])) / rows.sum())
            if abs(np.mean(activity[rows] == k) - p[rows].mean()) > 5 * error:
                return False
    return True


def test_bayes_for_users_never_met(rng: np.random.Generator) -> None:
    activity, theta = movements(rng)
    truth = hhar.posterior(theta)
    assert is_right(truth, activity)
    assert not is_right(truth.tempered(1.2), activity)
    assert not is_right(truth.tempered(0.85), activity)


def test_leaving_the_users_out_is_wrong(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    activity, theta = movements(rng)
    monkeypatch.setattr(hhar, "USER", np.zeros(7))
    assert not is_right(hhar.posterior(theta), activity)


def test_posterior_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two classes one apart in one number of variance 1/4 + 1/4 + 1/2: log odds (t - 1/2).
    monkeypatch.setattr(hhar, "CENTRES", np.array([[0.0], [1.0]]))
    monkeypatch.setattr(hhar, "USER", np.array([0.5]))
    monkeypatch.setattr(hhar, "UNIT", np.array([0.5]))
    monkeypatch.setattr(hhar, "OWN", np.full((2, 1), np.sqrt(0.5)))
    truth = hhar.posterior(np.array([[0.5], [2.0]]))
    assert truth.probs[:, 1] == pytest.approx([0.5, 1 / (1 + np.exp(-1.5))])


def test_activities_overlap(rng: np.random.Generator) -> None:
    activity, theta = movements(rng)
    assert 0.85 < metrics.accuracy(hhar.posterior(theta), activity) < 0.92
    share = np.bincount(activity) / len(activity)
    assert share == pytest.approx(np.full(6, 1 / 6), abs=0.01)


def test_thirty_users_with_all_activities() -> None:
    task = hhar.simulate(3_000, 2)
    assert task.classes == (
        "biking",
        "sitting",
        "standing",
        "walking",
        "stairs up",
        "stairs down",
    )
    assert task.groups is not None
    pairs = {(user, k) for user, k in zip(task.groups, task.y, strict=True)}
    assert len(pairs) == 30 * 6


def test_windows_show_gravity_and_cadence() -> None:
    # Pitch 0.3, no roll, 2 Hz, gain 1.1: the mean over whole cycles is gravity alone.
    theta = np.array([[np.log(2.0), np.log(3.0), 0.0, np.log(0.5), np.log(1.1), 0.3, 0.0]])
    window = hhar.simulated_windows(theta, np.zeros(1))[0]
    cycles = window[:225]  # nine cycles of 25 samples
    gravity = 1.1 * 9.81 * np.array([np.sin(0.3), 0.0, np.cos(0.3)])
    assert cycles.mean(axis=0) == pytest.approx([*gravity, 0, 0, 0], abs=1e-9)
    power = np.abs(np.fft.rfft(cycles, axis=0)) ** 2
    assert set(np.flatnonzero(power[1:, 2] > 1e-9) + 1) == {9, 18}


def features(latent: np.ndarray) -> np.ndarray:
    """The spectra in float64, without the logarithm, in which a search has false valleys."""
    parts = hhar.simulated_windows(latent[None, :7], latent[7:])[0].reshape(20, 12, 6)
    terms = np.fft.rfft(parts, axis=1) / 12
    response = np.abs(terms)
    response[:, 0] = terms[:, 0].real
    return response.transpose(0, 2, 1).ravel()


def without_logarithm(seen: np.ndarray) -> np.ndarray:
    linear = np.exp(seen.reshape(120, 7).astype(float)) - 1e-3
    linear[:, 0] = seen.reshape(120, 7)[:, 0]
    return linear.ravel()


def test_the_spectra_tell_theta(rng: np.random.Generator) -> None:
    """The truth is one given the spectra only if they determine theta."""
    _, theta = hhar.movements(np.arange(6), rng)
    for real in theta:
        latent = np.append(real, rng.uniform(0, 2 * np.pi))
        seen = without_logarithm(spectra(hhar.simulated_windows(latent[None, :7], latent[7:]))[0])
        assert features(latent) == pytest.approx(seen, abs=1e-5)

        def misfit(guess: np.ndarray, seen: np.ndarray = seen) -> np.ndarray:
            return features(guess) - seen

        starts = (latent + 0.03 * rng.standard_normal(8) for _ in range(20))
        searches = (least_squares(misfit, start, x_scale=0.1) for start in starts)
        found = next(search.x for search in searches if search.cost < 1e-6)  # in no false valley
        assert found[:7] == pytest.approx(real, abs=5e-3)
