"""The divergence from a known truth, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.distributions import Categorical, Gaussian
from rdeepsense.errors import InputError
from rdeepsense.paper.tasks.catalogue import kl_from_truth
from rdeepsense.paper.tasks.nycommute import TripMinutes


def test_gaussians_by_hand() -> None:
    # KL(N(0,1) || N(1,2)) = log 2 + (1 + 1) / 8 - 1/2
    shape = (2_000, 3)
    truth, predicted = Gaussian(np.zeros(shape), 1.0), Gaussian(np.ones(shape), 2.0)
    mean, error = kl_from_truth(truth, predicted, rng=0, draws=20)
    # The variance of log p - log q over draws is 2 (3/8)^2 + (1/4)^2 = 0.34375.
    assert error == pytest.approx(np.sqrt(0.34375 / (3 * 20 * 2_000)), rel=0.1)
    assert mean == pytest.approx(np.log(2) + 2 / 8 - 0.5, abs=4 * error)


def test_classes_by_hand() -> None:
    truth = Categorical(np.tile([0.5, 0.3, 0.2], (5_000, 1)))
    predicted = Categorical(np.tile([0.2, 0.3, 0.5], (5_000, 1)))
    mean, error = kl_from_truth(truth, predicted, rng=1, draws=5)
    assert mean == pytest.approx(0.3 * np.log(2.5), abs=4 * error)
    assert 0 < error < 0.01


def test_the_truth_itself_has_none() -> None:
    truth = TripMinutes(np.linspace(3, 60, 100), 0.3)
    assert kl_from_truth(truth, truth, rng=0, draws=3) == (0.0, 0.0)


def test_seeded() -> None:
    truth, predicted = Gaussian(np.zeros(10), 1.0), Gaussian(np.ones(10), 1.0)
    assert kl_from_truth(truth, predicted, 3, 2) == kl_from_truth(truth, predicted, 3, 2)
    assert kl_from_truth(truth, predicted, 3, 2) != kl_from_truth(truth, predicted, 4, 2)


def test_refusals() -> None:
    one, two = Gaussian([0.0], 1.0), Gaussian([0.0, 1.0], 1.0)
    with pytest.raises(InputError, match="two rows"):
        kl_from_truth(one, one, 0, 1)
    with pytest.raises(InputError, match=r"shape \(2, 1\), the prediction \(2, 2\)"):
        kl_from_truth(two[:, None], two[:, None][:, [0, 0]], 0, 1)
    with pytest.raises(InputError, match="n must be 1 or greater; got 0"):
        kl_from_truth(two, two, 0, 0)
