"""Novelty: densities that are known, shares that can be counted, sensors that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from torch import Tensor, nn

import rdeepsense as rds
from rdeepsense import InputError, RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.paper.tasks.faults import Sensors, inject
from rdeepsense.uncertainty.novelty import SCORES, Novelty, bounded

ALARM = 0.95
SETTINGS: dict[str, Any] = {
    "hidden": (8,),
    "epochs": 2,
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
}


def readings(rows: int, seed: int) -> Any:
    """Simulated: 8 sensors of 2 hidden quantities, with different gains and a little noise."""
    rng = np.random.default_rng(seed)
    gains = np.random.default_rng(99).uniform(0.5, 2, (2, 8))
    return 5 + rng.standard_normal((rows, 2)) @ gains + 0.1 * rng.standard_normal((rows, 8))


def waves(rows: int, seed: int) -> Any:
    """Simulated: windows of 3 channels, calm or lively, never quite still."""
    rng = np.random.default_rng(seed)
    size = rng.choice([0.01, 1.0], (rows, 1, 1)) * rng.uniform(0.5, 1.5, (rows, 1, 3))
    return rng.standard_normal((rows, 1, 3)) + size * rng.standard_normal((rows, 40, 3))


@pytest.fixture(scope="module")
def model() -> RDeepSenseRegressor:
    X = readings(3_000, 0)
    return RDeepSenseRegressor(**SETTINGS, effort="quick").fit(X, X.sum(1)).fit_novelty(X)


def known(shares: Any, means: Any, covariances: Any, held_out: Any = (0.0, 1.0)) -> Novelty:
    """Columns whose normal score is their value, and a mixture that is given."""
    size = len(means[0])
    factors = [np.linalg.cholesky(np.linalg.inv(c)) for c in covariances]
    stored = (
        np.zeros(size),
        np.ones(size),
        np.repeat(SCORES[:, None], size, 1),
        np.zeros(size),
        np.eye(size),
        shares,
        means,
        factors,
    )
    return Novelty(*(np.array(one, np.float32) for one in stored), np.array(held_out, float))


def test_the_surprise_is_minus_the_log_density() -> None:
    """Also far outside of the knots, where the normal score goes on as a line."""
    means, covariances = [[0.5, -1.0], [-2.0, 1.0]], [[[2.0, 0.5], [0.5, 1.0]], np.eye(2)]
    x = np.random.default_rng(0).uniform(-6, 6, (50, 2))
    parts = [multivariate_normal(m, c).pdf(x) for m, c in zip(means, covariances, strict=True)]
    found = known([0.25, 0.75], means, covariances).surprise(x)
    np.testing.assert_allclose(found, -np.log(0.25 * parts[0] + 0.75 * parts[1]), rtol=1e-5)


def test_the_share_of_rows_held_out() -> None:
    """Surprise x^2 / 2 + log(2 pi) / 2 of a standard normal; held out are 1, 2, ..., 9."""
    usual = np.arange(1, 10)
    fitted = known([1.0], [[0.0]], [[[1.0]]], usual + np.log(2 * np.pi) / 2)
    asked = np.array([[np.sqrt(2 * s)] for s in (0.0, 1.0, 5.5, 9.0, 13.0, 1e6)])
    # Of the tails' tenths half is left as far out as 9 is from the median 5.
    expected = [0.1 / 1.25, 0.1, 0.55, 0.9, 0.95, 1 - 0.1 / (1 + (1e6 - 9) / 4)]
    np.testing.assert_allclose(fitted.novelty(asked), expected, rtol=1e-5)


def test_a_gaussian_is_found_from_its_rows() -> None:
    """The surprise is half the squared Mahalanobis distance and a constant."""
    rng = np.random.default_rng(0)
    mix = np.array([[1.0, 0.0], [0.9, 0.3]])
    rows, other = (rng.standard_normal((n, 2)) @ mix.T for n in (4_000, 1_000))
    fitted = Novelty.fit(rows, other, most_gaussians=1)
    distance = np.sum(np.linalg.solve(mix, other.T) ** 2, axis=0)
    slope, _ = np.polyfit(distance, fitted.surprise(other), 1)
    assert slope == pytest.approx(0.5, rel=0.05)
    assert np.corrcoef(fitted.surprise(other), distance)[0, 1] > 0.99
    across, along = np.array([[1.5, -1.5]]), np.array([[1.5, 1.5]])
    assert fitted.novelty(across)[0] > 0.999 > 0.95 > fitted.novelty(along)[0]


def test_a_small_deviation_between_like_sensors_counts_in_its_own_size() -> None:
    """Six standard deviations of (a - b) are a surprise of 18, small as they are beside a."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((5_000, 1))
    pairs = np.hstack([a, a + 0.02 * rng.standard_normal(a.shape)])
    fitted = Novelty.fit(pairs[:4_000], pairs[4_000:], most_gaussians=1)
    usual, apart = fitted.surprise(np.array([[0.0, 0.0], [-0.06, 0.06]]))
    assert apart - usual == pytest.approx(6**2 / 2, rel=0.1)


def test_fresh_rows_raise_as_many_false_alarms_as_promised(model: RDeepSenseRegressor) -> None:
    found = model.novelty(readings(4_000, 1))
    for level in (0.5, 0.9, ALARM):
        assert np.mean(found > level) == pytest.approx(1 - level, abs=0.03)
    assert np.all((found > 0) & (found < 1))


def test_a_sensor_that_disagrees_with_the_others_is_seen(model: RDeepSenseRegressor) -> None:
    """The readings themselves are healthy ones, of another row."""
    X = readings(500, 2)
    stuck = inject("stuck", X, Sensors.of(readings(3_000, 0), 1), 0)
    far = np.abs(stuck - X).max(1) > 0.6  # six standard deviations of the noise
    assert far.mean() > 0.6
    assert np.mean(model.novelty(stuck[far]) > ALARM) > 0.98


def test_readings_below_all_others_are_seen_in_skewed_columns() -> None:
    """0 is close to most of them, by their standard deviation."""
    rng = np.random.default_rng(0)
    rows, other = (np.exp(rng.standard_normal((n, 3))) for n in (2_000, 500))
    assert np.all(rows.mean(0) / rows.std(0) < 1)
    assert Novelty.fit(rows, other).novelty(np.zeros((1, 3)))[0] > 0.99


def test_a_window_is_five_numbers_for_each_channel() -> None:
    windows = np.array([[[0.0, 7.0], [3.0, 7.0], [6.0, 7.0]]])
    fitted = Novelty.fit(windows.repeat(20, axis=0), windows)
    mean, std, low, high, steps = fitted.mean.reshape(5, 2)
    np.testing.assert_allclose(mean, [3, 7])
    np.testing.assert_allclose(std, [np.sqrt(6), 0])
    np.testing.assert_allclose([low, high], [[0, 7], [6, 7]])
    np.testing.assert_allclose(steps, [np.sqrt(2), 0])  # of 0, 3, 3


def test_windows_with_a_stuck_channel_are_seen() -> None:
    fitted = Novelty.fit(waves(1_500, 0), waves(500, 1))
    X = waves(500, 2)
    assert np.mean(fitted.novelty(X) > ALARM) == pytest.approx(0.05, abs=0.03)
    broken = inject("stuck", X, Sensors.of(X, 3), 0)
    assert np.mean(fitted.novelty(broken) > ALARM) > 0.95


class Flat(nn.Module):
    """Of windows (rows, 40, 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(120, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(x.flatten(1))
        return out


def test_a_model_of_windows_has_it_too() -> None:
    X = waves(400, 0)
    settings = SETTINGS | {"network": Flat()}
    fitted = (
        RDeepSenseRegressor(**settings, effort="quick")
        .fit(X, X.mean((1, 2)))
        .fit_novelty(X, waves(200, 1))
    )
    broken = inject("dropped", waves(100, 2), Sensors.of(X, 3), 0)
    assert np.mean(fitted.novelty(broken) > ALARM) > 0.95


def test_held_out_rows_set_the_level() -> None:
    """Rows of other users are all a little strange: with some of them held out, no more so."""
    X, others = readings(3_000, 0), 1.5 * readings(600, 3)
    fitted = RDeepSenseClassifier(**SETTINGS, effort="quick").fit(X, X[:, 0] > 5)
    assert np.mean(fitted.fit_novelty(X).novelty(others[300:]) > ALARM) > 0.5
    fitted.fit_novelty(X, held_out=others[:300])
    assert np.mean(fitted.novelty(others[300:]) > ALARM) == pytest.approx(0.05, abs=0.04)


def test_a_model_file_holds_it_to_the_last_bit(model: RDeepSenseRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "model.safetensors")
    loaded = rds.load(tmp_path / "model.safetensors")
    X = np.vstack([readings(50, 4), np.full((1, 8), 1e300)])
    np.testing.assert_array_equal(loaded.novelty(X), model.novelty(X))
    assert model.novelty(X)[-1] > 0.999999


def test_constant_and_missing_inputs() -> None:
    X = np.hstack([readings(300, 0), np.full((300, 1), 0.1)])
    X[::7, 2] = np.nan
    fitted = (
        RDeepSenseRegressor(missing="mean", **SETTINGS, effort="quick")
        .fit(X, X[:, 0])
        .fit_novelty(X)
    )
    moved = X.copy()
    moved[:, -1] = 0.2
    assert np.isfinite(fitted.novelty(X)).all()
    assert np.all(fitted.novelty(moved) > 0.999)


def test_few_rows_are_enough_and_fewer_are_refused() -> None:
    X = readings(60, 0)
    fitted = RDeepSenseRegressor(**SETTINGS, effort="quick").fit(X, X[:, 0])
    with pytest.raises(InputError, match=r"novelty needs fit_novelty\(X\)"):
        fitted.novelty(X)
    with pytest.raises(InputError, match="36 rows to learn from and 9 held out; at least 10"):
        fitted.fit_novelty(X[:45])
    with pytest.raises(InputError, match="60 rows to learn from and 3 held out"):
        fitted.fit_novelty(X, held_out=X[:3])
    found = fitted.fit_novelty(X).novelty(X)
    assert np.all((found > 0) & (found < 1))
    assert fitted.fit(X, X[:, 0]).fitted_.novelty is None


def test_the_rows_that_are_used_are_bounded() -> None:
    X = np.arange(1_000.0)[:, None]
    rows, held_out = bounded(X, None, most_rows=100, most_held_out=30)
    assert (len(rows), len(held_out)) == (100, 30)
    assert len({*rows[:, 0], *held_out[:, 0]}) == 130  # no row is on both sides
    rows, held_out = bounded(X, X + 1_000, most_rows=100, most_held_out=30)
    assert (len(rows), len(held_out)) == (100, 30)
    assert rows.max() < 1_000 <= held_out.min()
