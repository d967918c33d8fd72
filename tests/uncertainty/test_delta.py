"""The delta method: closed forms, masks shared by channels and sequences, what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rdeepsense import InputError, convert, epistemic_variance
from rdeepsense.dropout import DropoutGRU, StochasticNetwork
from rdeepsense.heads.point import PointHead
from rdeepsense.networks import dense
from rdeepsense.uncertainty import by_delta

P = 0.2
RATE = P / (1 - P)


def stochastic(body: nn.Module, outputs: int = 1) -> StochasticNetwork:
    return StochasticNetwork(body.double(), PointHead(outputs), "").eval()


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_one_layer_by_hand() -> None:
    layer = nn.Linear(2, 1)
    layer.weight.data = torch.tensor([[3.0, -4.0]])
    found = epistemic_variance(
        stochastic(nn.Sequential(nn.Dropout(P), layer)), torch.tensor([[1.0, 2.0]]).double()
    )
    assert found.item() == pytest.approx((9 + 64) * RATE, rel=1e-12)


def test_exact_for_the_last_mask_of_a_deep_network() -> None:
    torch.manual_seed(0)
    inside, last = nn.Sequential(nn.Linear(3, 8), nn.Tanh()), nn.Linear(8, 2)
    net = stochastic(nn.Sequential(inside, nn.Dropout(P), last), 2)
    x = rows(5, 3)
    exact = inside(x).square() @ last.weight.T.square() * RATE
    torch.testing.assert_close(epistemic_variance(net, x), exact)


def test_layers_add_up_in_a_network_without_activations() -> None:
    """Two masks of a product: delta keeps the terms of one mask and leaves out that of both."""
    torch.manual_seed(0)
    first, second = nn.Linear(3, 4, bias=False), nn.Linear(4, 1, bias=False)
    net = stochastic(nn.Sequential(nn.Dropout(P), first, nn.Dropout(P), second))
    x = rows(6, 3)
    w1, w2 = first.weight.double(), second.weight.double()
    inputs = (x * (w2 @ w1)).square().sum(1)
    hidden = ((x @ w1.T) * w2).square().sum(1)
    torch.testing.assert_close(epistemic_variance(net, x)[:, 0], RATE * (inputs + hidden))


def test_agrees_with_sampling_within_its_error() -> None:
    torch.manual_seed(0)
    net = convert(dense(4, (64, 64), 2), drop_prob=0.05).double().eval()
    x = rows(20, 4)
    sampled = epistemic_variance(net, x, "sample", samples=4_000)
    ratio = epistemic_variance(net, x) / sampled
    assert 0.93 < ratio.median() < 1.07
    assert (ratio - 1).abs().median() < 0.1


def test_a_channel_is_summed_before_the_square() -> None:
    read = nn.Linear(6, 1, bias=False)
    read.weight.data = torch.ones(1, 6)
    x = rows(4, 2, 3)
    by_channel = stochastic(nn.Sequential(nn.Dropout1d(P), nn.Flatten(), read))
    single = stochastic(nn.Sequential(nn.Dropout(P), nn.Flatten(), read))
    torch.testing.assert_close(
        epistemic_variance(by_channel, x)[:, 0], RATE * x.sum(2).square().sum(1)
    )
    torch.testing.assert_close(epistemic_variance(single, x)[:, 0], RATE * x.square().sum((1, 2)))


def test_converted_convolutions_drop_by_channel() -> None:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv1d(2, 3, 2, bias=False), nn.Flatten(), nn.Linear(9, 1))
    net = convert(body, "point", drop_prob=0.0, input_drop_prob=P, example=torch.zeros(2, 2, 4))
    net = net.double().eval()
    x = rows(3, 2, 4)
    kernel, read = body[0].weight.double(), body[2].weight.double()
    alone = [functional.conv1d(x[:, [c]], kernel[:, [c]]).flatten(1) @ read.T for c in (0, 1)]
    exact = RATE * sum(part.square() for part in alone)
    torch.testing.assert_close(epistemic_variance(net, x), exact)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 16, batch_first=True)
        self.out = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.gru(x)[0][:, -1])
        return out


@pytest.mark.parametrize("batch", [1, 12])
def test_one_mask_per_sequence_is_summed_over_time(batch: int) -> None:
    torch.manual_seed(0)
    x = rows(batch, 8, 3)
    net = convert(Recurrent(), drop_prob=0.05, input_drop_prob=0.05, example=x.float())
    net = net.double().eval()
    assert isinstance(net.body.gru, DropoutGRU)
    ratio = epistemic_variance(net, x) / epistemic_variance(net, x, "sample", samples=4_000)
    assert 0.9 < ratio.median() < 1.1


def test_a_way_around_the_dropout_does_not_count() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.drop, self.out = nn.Linear(3, 3), nn.Dropout(P), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            out: Tensor = self.out(h + self.drop(h))
            return out

    torch.manual_seed(0)
    body = Residual().double()
    x = rows(5, 3)
    exact = RATE * (body.first(x) * body.out.weight).square().sum(1, keepdim=True)
    torch.testing.assert_close(epistemic_variance(stochastic(body), x), exact)


def test_rows_and_outputs_do_not_depend_on_their_company() -> None:
    torch.manual_seed(0)
    net = convert(dense(4, (16, 16), 3), drop_prob=0.1).double().eval()
    x = rows(40, 4)
    together = epistemic_variance(net, x)
    assert together.shape == (40, 3)
    torch.testing.assert_close(epistemic_variance(net, x[7:8]), together[7:8])


def test_many_outputs_are_found_in_parts() -> None:
    torch.manual_seed(0)
    net = convert(dense(4, (16,), 5), drop_prob=0.1).double().eval()
    x = rows(10, 4)
    whole = epistemic_variance(net, x)
    for values in (1, 2 * 160):
        torch.testing.assert_close(by_delta(net, x, values)[1], whole)


def test_leaves_the_network_and_its_mean_alone() -> None:
    net = convert(dense(4, (16, 16), 2), drop_prob=0.1).double().eval()
    x = rows(10, 4)
    before = net(x).mean
    params, variance = by_delta(net, x)
    assert torch.equal(next(iter(params)), before)
    assert not variance.requires_grad
    assert not any(m.training for m in net.modules())
    assert all(p.grad is None for p in net.parameters())


def test_frozen_weights_and_no_grad_are_no_obstacle() -> None:
    net = convert(dense(4, (16, 16), 2), drop_prob=0.1).double().eval()
    x = rows(10, 4)
    expected = epistemic_variance(net, x)
    torch.testing.assert_close(epistemic_variance(net.requires_grad_(False), x), expected)
    with torch.no_grad():
        torch.testing.assert_close(epistemic_variance(net, x), expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (nn.Sequential(nn.Linear(3, 1)), "drops nothing"),
        (nn.Sequential(nn.Dropout(0.0), nn.Linear(3, 1)), "drops nothing"),
        (nn.Sequential(nn.AlphaDropout(P), nn.Linear(3, 1)), "no rule for alpha_dropout"),
        (
            nn.Sequential(nn.Linear(3, 4), nn.Dropout(P), nn.ReLU(inplace=True), nn.Linear(4, 1)),
            "in place",
        ),
    ],
)
def test_refusals(body: nn.Module, message: str) -> None:
    with pytest.raises(InputError, match=message):
        epistemic_variance(stochastic(body), rows(5, 3))


def test_rows_must_come_first() -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.out = nn.Dropout(P), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.out(self.drop(x.transpose(0, 1)).mean(0))
            return out

    with pytest.raises(InputError, match=r"shape \(4, 5, 3\) for 5 rows"):
        epistemic_variance(stochastic(TimeFirst()), rows(5, 4, 3))


@pytest.mark.parametrize("method", ["delta", "moments", "sample"])
def test_a_network_in_training_stays_so(method: str) -> None:
    net = convert(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), drop_prob=0.1)
    net.train().body[1].eval()  # type: ignore[index]
    before = [module.training for module in net.modules()]
    epistemic_variance(net, torch.zeros(2, 3), method)
    assert [module.training for module in net.modules()] == before


def test_unknown_methods_are_named() -> None:
    net = convert(dense(3, (4,), 1), drop_prob=0.1).eval()
    x = torch.zeros(2, 3)
    with pytest.raises(InputError, match="method = 'guess' is unknown; accepted: delta, moments"):
        epistemic_variance(net, x, "guess")
    with pytest.raises(InputError, match="samples = 1 is not"):
        epistemic_variance(net, x, "sample", samples=1)
    with pytest.raises(InputError, match="needs fitted=Laplace.fit"):
        epistemic_variance(net, x, "laplace")
