"""Calibration: the factor that is known, shrinkage, heavy tails, temperature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from rdeepsense import Categorical, Gaussian, InputError, Mixture, StudentT, metrics
from rdeepsense.calibration import Isotonic, Noise, Scale, Temperature, fit, kind_of
from rdeepsense.distributions import Recalibrated


def test_a_known_factor_is_found_and_shrunk(rng: np.random.Generator) -> None:
    n = 5_000
    truth = Gaussian(np.zeros(n), np.full(n, 2.0))
    y = truth.sample(1, rng)[0]
    scale = Scale.fit(Gaussian(np.zeros(n), np.ones(n)), y)
    exact = np.sqrt(np.mean(y**2))
    assert scale.factor == pytest.approx(exact ** (n / (n + 50)), rel=1e-12)
    assert scale.apply(Gaussian([0.0], [3.0])) == Gaussian([0.0], [3.0 * scale.factor])


def test_few_rows_hardly_move_it() -> None:
    y = np.array([10.0, -10.0])
    assert Scale.fit(Gaussian(np.zeros(2), np.ones(2)), y).factor == pytest.approx(10 ** (2 / 52))


def test_the_closed_form_is_the_least_nll(rng: np.random.Generator) -> None:
    y = rng.standard_t(4, 300)
    dist = Gaussian(np.zeros(300), np.linspace(0.5, 2, 300))
    best = minimize_scalar(lambda s: -dist.widened(np.exp(s)).log_prob(y).mean()).x
    assert Scale.fit(dist, y).factor == pytest.approx(np.exp(best * 300 / 350), rel=1e-5)


def test_a_student_is_not_scaled_by_its_squares(rng: np.random.Generator) -> None:
    """On heavy tails mean(z^2) is huge while the fit is fine."""
    n, df = 4_000, 2.1
    truth = StudentT(np.zeros(n), np.ones(n), np.full(n, df))
    y = truth.sample(1, rng)[0]
    y[0] = 1e4
    assert np.sqrt(np.mean((y / truth.std) ** 2)) > 10
    standard_error = 1 / np.sqrt(n * 2 * df / (df + 3))  # of the scale, by Fisher's information
    assert Scale.fit(truth, y).factor == pytest.approx(1.0, abs=6 * standard_error)


def test_weights_are_repetitions(rng: np.random.Generator) -> None:
    y, weight = rng.standard_normal(40), rng.integers(1, 4, 40)
    rows = np.repeat(np.arange(40), weight)
    dist = Gaussian(np.zeros(40), np.linspace(0.5, 2, 40))
    unshrunk = [
        np.log(Scale.fit(dist, y, weight.astype(float)).factor) * 90 / 40,
        np.log(Scale.fit(dist[rows], y[rows]).factor) * (len(rows) + 50) / len(rows),
    ]
    assert unshrunk[0] == pytest.approx(unshrunk[1])


def test_temperature_finds_overconfidence(rng: np.random.Generator) -> None:
    n = 6_000
    logits = rng.standard_normal((n, 3)) * 2
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    y = Categorical(probs).sample(1, rng)[0]
    sharp = np.exp(2 * logits) / np.exp(2 * logits).sum(1, keepdims=True)
    temperature = Temperature.fit(Categorical(sharp), y)
    assert temperature.factor == pytest.approx(2.0, rel=0.08)
    np.testing.assert_allclose(
        temperature.apply(Categorical(sharp)).probs,
        sharp ** (1 / temperature.factor)
        / (sharp ** (1 / temperature.factor)).sum(1, keepdims=True),
    )


def test_isotonic_corrects_a_wrong_shape(rng: np.random.Generator) -> None:
    """A Gaussian fitted to two widths: the scale cannot mend the shape, the map can."""
    n = 20_000
    dist = Gaussian(np.zeros(n), np.ones(n))
    y, new = rng.standard_normal((2, n)) * rng.choice([0.5, 4.0], (2, n), p=[0.8, 0.2])
    scaled, corrected = Scale.fit(dist, y).apply(dist), Isotonic.fit(dist, y).apply(dist)
    assert metrics.deviation_area(scaled, new) > 0.04
    assert metrics.deviation_area(corrected, new) < 0.02
    assert metrics.nll(corrected, new) < metrics.nll(scaled, new)


def test_auto_takes_the_map_only_where_the_shape_is_wrong(rng: np.random.Generator) -> None:
    level = rng.permutation((np.arange(2_000) + 0.5) / 2_000)
    dist = Gaussian(np.zeros(2_000), np.ones(2_000))
    assert isinstance(fit("auto", dist, stats.norm.ppf(level, scale=2)), Scale)
    assert isinstance(fit("auto", dist, stats.t.ppf(level, 2.2)), Isotonic)


def test_noise_is_the_least_nll_by_brute_force(rng: np.random.Generator) -> None:
    mean, std = rng.standard_normal(500), rng.uniform(0.1, 1.0, 500)
    y = mean + np.sqrt(std**2 + 0.49) * rng.standard_normal(500)
    dist = Gaussian(mean, std)
    found = float(Noise.fit(dist, y).variance)
    grid = np.linspace(found - 1e-3, found + 1e-3, 2_001)
    losses = [-Gaussian(mean, np.sqrt(std**2 + s)).log_prob(y).mean() for s in grid]
    assert grid[int(np.argmin(losses))] == pytest.approx(found, abs=2e-6)
    standard_error = 1 / np.sqrt(np.sum(0.5 / (std**2 + 0.49) ** 2))  # by Fisher's information
    assert found == pytest.approx(0.49, abs=6 * standard_error)
    two = Noise.fit(Gaussian(np.zeros((500, 2)), np.ones((500, 2)) / 9), np.c_[y, 10 * y])
    assert two.variance.shape == (2,)
    assert two.variance[1] > 50 * two.variance[0]


def test_a_mixture_is_stretched_about_its_own_mean(rng: np.random.Generator) -> None:
    mixture = Mixture([Gaussian([0.0], [1.0]), Gaussian([4.0], [1.0])])
    wide = Scale(2.0).apply(mixture)
    np.testing.assert_allclose(wide.mean, mixture.mean)
    np.testing.assert_allclose(wide.std, 2 * mixture.std)
    y = np.concatenate([c.sample(3_000, rng)[:, 0] for c in wide.components])
    whole = Mixture([Gaussian(np.full(6_000, m), np.ones(6_000)) for m in (0.0, 4.0)])
    assert Scale.fit(whole, y).factor == pytest.approx(2.0, rel=0.05)


def test_a_recalibrated_one_is_stretched_about_its_own_mean(rng: np.random.Generator) -> None:
    base = Gaussian(rng.normal(size=20_000), np.full(20_000, 2.0))
    wide = Recalibrated(base, [0.0, 0.5, 1.0], [0.0, 0.3, 1.0])
    y = wide.sample(1, rng)[0]
    narrow = Scale(0.25).apply(wide)
    np.testing.assert_allclose(narrow.mean, wide.mean, atol=1e-12)
    np.testing.assert_allclose(narrow.std, wide.std / 4, rtol=1e-12)
    assert Scale.fit(narrow, y).factor == pytest.approx(4, rel=0.05)


def test_names() -> None:
    assert kind_of(True, "scale") == kind_of("scale", "scale") == "scale"
    assert kind_of("conformal", "scale") == "scale"
    assert kind_of("isotonic", "scale") == "isotonic"
    assert kind_of(False, "scale") is None
    with pytest.raises(InputError, match="calibrate = 'temperature' is unknown here"):
        kind_of("temperature", "scale")


def test_temperature_does_not_trust_rows_that_are_all_right(rng: np.random.Generator) -> None:
    """An error after a temperature near 0 would cost without bound."""
    probs = np.full((300, 3), 0.01)
    y = rng.integers(0, 3, 300)
    probs[np.arange(300), y] = 0.98
    factor = Temperature.fit(Categorical(probs), y).factor
    assert 0.5 < factor < 1
    alone = Categorical([[0.98, 0.01, 0.01]])
    assert Temperature(factor).apply(alone).log_prob([1])[0] > -9


def test_auto_needs_a_deviation_of_twice_the_floor_and_no_loss(rng: np.random.Generator) -> None:
    n = 4_000
    dist = Gaussian(np.zeros(n), np.ones(n))
    y = rng.permutation(stats.t.ppf((np.arange(n) + 0.5) / n, 4))
    area = metrics.deviation_area(Scale.fit(dist, y).apply(dist), y)
    assert 2 < area / metrics.deviation_floor(n) < 20
    assert isinstance(fit("auto", dist, y), Isotonic)
    few = rng.permutation(stats.t.ppf((np.arange(60) + 0.5) / 60, 4))
    assert isinstance(fit("auto", dist[:60], few), Scale)  # too few for the map to gain anything


@pytest.mark.parametrize("rows", [1, 3, 9])
def test_auto_takes_the_scale_where_rows_are_too_few_to_tell(rows: int) -> None:
    dist = Gaussian(np.zeros(rows), np.ones(rows))
    assert isinstance(fit("auto", dist, np.full(rows, 2.0)), Scale)
