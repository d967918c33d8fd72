"""The prior of a correction: the information of training rows, weighed down and turned."""

from __future__ import annotations

import numpy as np
import pytest

from rdeepsense.adaptation.choose import KEPT, basis, of_last_layer
from rdeepsense.errors import InputError


def spd(size: int, seed: int = 0) -> np.ndarray:
    half = np.random.default_rng(seed).normal(size=(size, 2 * size))
    return half @ half.T


def test_inputs_are_left_out() -> None:
    whole = spd(9)  # 5 hidden, 3 inputs, the 1
    root = np.linalg.inv(np.linalg.cholesky(whole)).T
    chosen = [0, 1, 2, 3, 4, 8]
    found = of_last_layer(root.astype(np.float32), 5)
    assert found == pytest.approx(whole[np.ix_(chosen, chosen)], rel=1e-3, abs=1e-3)


def test_prior_is_the_identity_in_its_own_coordinates() -> None:
    information = spd(6)
    turned = basis(information, 1_000.0, 20.0, 0.25)
    prior = np.linalg.inv(information * 20 / 1_000)
    prior[-1, -1] += 0.25
    assert turned @ turned.T == pytest.approx(prior, rel=1e-9)


def test_many_features_are_projected() -> None:
    information = spd(200)
    turned = basis(information, 500.0, 50.0)
    assert turned.shape == (200, KEPT + 1)
    vectors = np.linalg.eigh(information[:-1, :-1])[1]
    weak = np.r_[vectors[:, 0], 0.0]  # the direction with least information is not among them
    assert np.abs(weak @ turned).max() < 1e-9
    strong = np.r_[vectors[:, -1], 0.0]
    assert np.linalg.norm(strong @ turned) > 0.01


@pytest.mark.parametrize("given", [(0.0, 0.0), (-1.0, 0.0), (1.0, -0.1), (float("nan"), 0.0)])
def test_bad_numbers_are_refused(given: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="rows = "):
        basis(np.eye(3), 10.0, *given)
