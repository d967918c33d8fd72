"""Rounding in training: to a step in raw units, about half of the windows, in training alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import rdeepsense as rds
from rdeepsense.networks import DeepSense
from rdeepsense.networks.deepsense import RandomRounding

SHIFT = np.array([9.7, -0.3, 0.02])
SCALE = np.array([2.0, 0.5, 3.0])


def layer(*steps: float) -> RandomRounding:
    found = RandomRounding((2, 1), steps).double()
    found.set_units(SHIFT, SCALE)
    return found


def test_about_half_of_the_windows_are_rounded_in_raw_units() -> None:
    torch.manual_seed(0)
    x = torch.randn(400, 7, 3, dtype=torch.float64)
    found = layer(0.1, 0.0)(x)
    torch.testing.assert_close(found[..., 2], x[..., 2], rtol=0, atol=0)  # this sensor does not
    same = (found == x).flatten(1).all(1)
    assert 150 < same.sum() < 250
    raw, seen = (v[..., :2] * torch.tensor(SCALE[:2]) + torch.tensor(SHIFT[:2]) for v in (x, found))
    expected = torch.where(same[:, None, None], raw, torch.round(raw / 0.1) * 0.1)
    torch.testing.assert_close(seen, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("steps", [(0.1, 0.2), (0.0, 0.0)])
def test_nothing_is_rounded_in_evaluation_or_without_a_step(steps: tuple[float, ...]) -> None:
    x = torch.randn(20, 7, 3, dtype=torch.float64)
    own = layer(*steps)
    assert (own.eval() if any(steps) else own)(x) is x


def test_a_network_keeps_its_steps_where_it_has_some(tmp_path: Any) -> None:
    plain, rounds = DeepSense((3,), interval=4), DeepSense((3,), interval=4, rounding=[0.1])
    assert "rounding" not in plain.arguments()
    assert rounds.arguments()["rounding"] == (0.1,)
    assert DeepSense((3,), rounding=(0.0,)).rounding == ()
    X, y = np.random.default_rng(0).normal(size=(40, 8, 3)), np.arange(40) % 2
    small = DeepSense((3,), interval=4, filters=2, hidden=3, layers=1, rounding=(0.1,))
    model = rds.RDeepSenseClassifier(network=small, epochs=1, verbose=False, random_state=0)
    model.set_params(effort="quick").fit(X, y).save(tmp_path / "m")
    assert rds.load(tmp_path / "m").fitted_.networks.architecture == small


@pytest.mark.parametrize("bad", [(0.1, 0.1), (-0.1,), "0.1", (True,), (float("inf"),)])
def test_steps_that_are_none_are_refused(bad: Any) -> None:
    with pytest.raises(rds.RDeepSenseError, match="rounding = .* is no list of a step"):
        DeepSense((3,), rounding=bad)
