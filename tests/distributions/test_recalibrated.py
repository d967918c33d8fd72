"""Recalibrated distributions: identity, a known map, moments, quantiles."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense import Categorical, Gaussian, InputError, Mixture, StudentT
from rdeepsense.distributions import Recalibrated, concatenate

IDENTITY = np.linspace(0, 1, 5)
BENT = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
GAUSSIAN = Gaussian([0.0, 5.0], [1.0, 2.0])
BASES = [
    GAUSSIAN,
    StudentT([0.0, 5.0], [1.0, 2.0], [4.0, 9.0]),
    Mixture([GAUSSIAN, Gaussian([1.0, 3.0], [2.0, 1.0])]),
]


@pytest.mark.parametrize("base", BASES)
def test_the_identity_changes_nothing(base: Gaussian) -> None:
    same = Recalibrated(base, IDENTITY, IDENTITY)
    y = np.array([0.3, 4.0])
    np.testing.assert_allclose(same.log_prob(y), base.log_prob(y))
    np.testing.assert_allclose(same.cdf(y), base.cdf(y))
    np.testing.assert_allclose(same.interval(0.8), base.interval(0.8), atol=1e-9)
    np.testing.assert_allclose(same.mean, base.mean, atol=0.02)
    np.testing.assert_allclose(same.std, base.std, rtol=0.06)
    np.testing.assert_allclose(same.crps(y), base.crps(y), rtol=0.03)
    np.testing.assert_allclose(same.entropy(), base.entropy(), atol=0.02)


@pytest.mark.parametrize("base", BASES)
def test_a_bent_map(base: Gaussian) -> None:
    dist = Recalibrated(base, IDENTITY, BENT)
    np.testing.assert_allclose(dist.cdf(base.quantile(0.25)), 0.1)
    np.testing.assert_allclose(dist.quantile(0.9), base.quantile(0.75))
    np.testing.assert_allclose(dist.cdf(dist.quantile(0.37)), 0.37)
    # between 25 % and 50 % of the base lie 40 % of the truth: density times 1.6
    y = base.quantile(0.4)
    np.testing.assert_allclose(dist.log_prob(y), base.log_prob(y) + np.log(1.6))
    draws = dist.sample(40_000, 0)
    np.testing.assert_allclose(draws.mean(0), dist.mean, atol=0.06)
    np.testing.assert_allclose(draws.std(0), dist.std, rtol=0.06)
    assert dist[1].mean.shape == ()
    assert concatenate([dist[:1], dist[1:]]) == dist
    np.testing.assert_allclose(dist.affine(1.0, 3.0).mean, 1 + 3 * dist.mean, rtol=1e-6)


def test_refusals() -> None:
    with pytest.raises(InputError, match="actual must rise strictly from 0 to 1"):
        Recalibrated(GAUSSIAN, IDENTITY, [0, 0.5, 0.5, 0.7, 1])
    with pytest.raises(InputError, match="only continuous"):
        Recalibrated(Categorical([0.5, 0.5]), IDENTITY, BENT)  # type: ignore[arg-type]
