"""Moment propagation: exact where it can be, closed forms of its activations, its known bias."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from rdeepsense import InputError, convert, epistemic_variance
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.heads.point import PointHead
from rdeepsense.networks import dense
from rdeepsense.uncertainty.masks import _by_quadrature, _relu

P = 0.2
RATE = P / (1 - P)


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.Sigmoid])
def test_exact_for_one_hidden_layer(activation: type[nn.Module]) -> None:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(3, 32), activation(), nn.Linear(32, 2))
    net = convert(body, drop_prob=P).double().eval()
    x = rows(7, 3)
    hidden = body[:2].double()(x)
    exact = hidden.square() @ body[2].weight.T.double().square() * RATE
    torch.testing.assert_close(epistemic_variance(net, x, "moments"), exact, rtol=1e-4, atol=1e-12)


def test_exact_for_two_masks_without_activations() -> None:
    """Of independent units: E[z^2] of both masks multiply, which delta leaves out."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Dropout(P), nn.Linear(1, 4), nn.Dropout(P), nn.Linear(4, 1))
    body[1].weight.data[1:] = 0  # one unit that depends on a mask, so that none are correlated
    net = StochasticNetwork(body.double(), PointHead(1), "").eval()
    x = rows(5, 1)
    sampled = epistemic_variance(net, x, "sample", samples=200_000)
    found = epistemic_variance(net, x, "moments")
    torch.testing.assert_close(found, sampled, rtol=0.03, atol=1e-4)


def test_relu_of_a_gaussian() -> None:
    """At mean 0: E = s / sqrt(2 pi), Var = s^2 (1/2 - 1 / (2 pi))."""
    mean, var = _relu(torch.zeros(1).double(), torch.full((1,), 4.0).double())
    assert mean.item() == pytest.approx(2 / (2 * torch.pi) ** 0.5)
    assert var.item() == pytest.approx(4 * (0.5 - 0.5 / torch.pi))
    m, v = rows(100), rows(100).square()
    draws = torch.relu(m + v.sqrt() * rows(20_000, 100))
    mean, var = _relu(m, v)
    torch.testing.assert_close(mean, draws.mean(0), rtol=0, atol=0.05)
    torch.testing.assert_close(var, draws.var(0), rtol=0.1, atol=0.02)


def test_smooth_activations_of_a_gaussian() -> None:
    m, v = rows(100), rows(100).square()
    draws = torch.tanh(m + v.sqrt() * rows(20_000, 100))
    mean, var = _by_quadrature(torch.tanh, m, v)
    torch.testing.assert_close(mean, draws.mean(0), rtol=0, atol=0.02)
    torch.testing.assert_close(var, draws.var(0), rtol=0.1, atol=0.01)


def test_one_convolution_without_overlap_of_its_taps() -> None:
    """With one tap per channel no two products share a mask, and the sum is exact."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Dropout1d(P), nn.Conv1d(3, 2, 1), nn.Flatten(), nn.Linear(2, 1))
    net = StochasticNetwork(body.double(), PointHead(1), "").eval()
    x = rows(4, 3, 1)
    first = body[1]
    assert isinstance(first, nn.Conv1d)
    _, hidden = (None, x[..., 0].square() @ first.weight[..., 0].T.square() * RATE)
    exact = hidden @ body[3].weight.T.square()
    torch.testing.assert_close(epistemic_variance(net, x, "moments"), exact)


def test_shared_masks_are_missed_and_that_is_known() -> None:
    """Two copies of one dropped number, added: their covariance is half of the variance."""
    body = nn.Sequential(nn.Dropout(P), nn.Linear(1, 2, bias=False), nn.Linear(2, 1, bias=False))
    for layer in (body[1], body[2]):
        layer.weight.data.fill_(1.0)
    net = StochasticNetwork(body.double(), PointHead(1), "").eval()
    x = torch.ones(1, 1).double()
    assert epistemic_variance(net, x, "delta").item() == pytest.approx(4 * RATE)
    assert epistemic_variance(net, x, "moments").item() == pytest.approx(2 * RATE)


def test_refuses_what_it_has_no_rule_for() -> None:
    body = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1))
    net = convert(body, drop_prob=0.1, input_drop_prob=0.1)
    with pytest.raises(InputError, match="no rule for GELU; it has: Linear, Conv1d"):
        epistemic_variance(net, torch.ones(2, 3), "moments")


def test_any_module_may_stand_before_the_first_mask() -> None:
    torch.manual_seed(0)
    net = convert(nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1)), drop_prob=0.1)
    found, exact = (epistemic_variance(net, torch.ones(2, 3), by) for by in ("moments", "delta"))
    torch.testing.assert_close(found, exact)


def test_several_outputs_have_their_columns() -> None:
    net = convert(dense(3, (8, 8), 2), drop_prob=0.1).eval()
    assert epistemic_variance(net, torch.zeros(5, 3), "moments").shape == (5, 2)
