"""Sampling: the population variance of passes, streamed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rdeepsense import epistemic_variance
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.heads.point import PointHead
from rdeepsense.uncertainty import by_sampling


def network() -> StochasticNetwork:
    layer = nn.Linear(1, 1)
    layer.weight.data.fill_(1.0)
    layer.bias.data.fill_(1e4)  # E[x^2] - E[x]^2 in float32 would be all rounding
    return StochasticNetwork(nn.Sequential(nn.Dropout(0.5), layer), PointHead(1), "").eval()


def test_variance_of_one_coin() -> None:
    """x z / (1 - p) with p = 1/2 is 0 or 2x: variance x^2, whose estimate has error x^2 / k."""
    found = epistemic_variance(network(), torch.tensor([[1.0], [3.0]]), "sample", samples=20_000)
    assert found[0].item() == pytest.approx(1.0, rel=0.02)
    assert found[1].item() == pytest.approx(9.0, rel=0.02)


def test_passes_of_several_batches_are_one_sample() -> None:
    x = torch.ones(3, 1)
    found = [by_sampling(network(), x, samples=501, chunk=chunk)[1] for chunk in (8_192, 7)]
    assert all(torch.allclose(f, torch.ones(3, 1), atol=0.15) for f in found)


def test_leaves_the_random_state_and_the_mode_alone() -> None:
    net = network()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first = epistemic_variance(net, torch.ones(4, 1), "sample", samples=50, seed=5)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(
        first, epistemic_variance(net, torch.ones(4, 1), "sample", samples=50, seed=5)
    )
    assert not any(module.training for module in net.modules())
