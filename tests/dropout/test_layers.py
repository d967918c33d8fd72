"""Masks of the right form: whole channels of convolutions; one pass against many."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from rdeepsense import ConversionError, InputError, convert
from rdeepsense.dropout import DropoutConv1d, DropoutConv2d, DropoutGRU, DropoutLinear

PASSES = 20_000


class Convolved(nn.Module):
    """Without activations, so that the single pass is the mean over the masks."""

    def __init__(self, planes: bool) -> None:
        super().__init__()
        convolution = nn.Conv2d if planes else nn.Conv1d
        self.first = convolution(3, 4, 3)
        self.second = convolution(4, 5, 2)
        self.last = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.second(self.first(x))
        return self.last(h.flatten(2).mean(2))


def within_sampling_error(network: nn.Module, x: Tensor) -> None:
    torch.manual_seed(0)
    converted = convert(network, drop_prob=0.3, input_drop_prob=0.2, example=x).double().eval()
    single = converted(x.double()).mean[0]
    with torch.no_grad(), converted.sampling():
        drawn = converted(x.double().expand(PASSES, *x.shape[1:])).mean
    z = (drawn.mean(0) - single) / (drawn.std(0) / math.sqrt(PASSES))
    assert drawn.std(0).min() > 0.01
    assert z.abs().max() < 4, z


@pytest.mark.parametrize("planes", [False, True])
def test_the_single_pass_of_convolutions_is_the_mean_of_many(planes: bool) -> None:
    torch.manual_seed(1)
    x = torch.randn(1, 3, 6, 7) if planes else torch.randn(1, 3, 8)
    within_sampling_error(Convolved(planes), x)


def test_the_single_pass_of_linear_layers_is_the_mean_of_many() -> None:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 6), nn.Linear(6, 2))
    within_sampling_error(network, torch.randn(1, 5))


@pytest.mark.parametrize(
    ("form", "layer", "shape"),
    [
        (DropoutConv1d, nn.Conv1d(8, 8, 1, bias=False), (50, 8, 6)),
        (DropoutConv2d, nn.Conv2d(8, 8, 1, bias=False), (50, 8, 3, 4)),
    ],
)
def test_whole_channels_are_dropped(
    form: type[DropoutConv1d], layer: nn.Module, shape: tuple[int, ...]
) -> None:
    """A convolution that copies its input shows what went in."""
    torch.manual_seed(0)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(8).view_as(layer.weight))
    form.become(layer, 0.25)
    seen = layer.train()(torch.ones(shape)).flatten(2)
    first = seen[:, :, :1]
    assert torch.equal(seen, first.expand_as(seen))
    kept = first.flatten() > 0
    torch.testing.assert_close(first.flatten()[kept], torch.full((int(kept.sum()),), 4 / 3))
    # 400 channels, each dropped with probability 1/4: 100 +- 4 standard errors of 8.7
    assert 65 < int((~kept).sum()) < 135
    # rows have masks of their own, and so have channels
    assert len({tuple(row) for row in first.flatten(1).tolist()}) > 20
    assert torch.equal(layer.eval()(torch.ones(shape)), torch.ones(shape))
    one_row = layer.train()(torch.ones(shape[1:])).flatten(1)
    assert torch.equal(one_row, one_row[:, :1].expand_as(one_row))


class Branches(nn.Module):
    """Two sensors with layers of their own; both read sensors, whatever is registered first."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(8, 2)
        self.norm = nn.BatchNorm1d(4)
        self.sides = nn.ModuleList(nn.Conv1d(2, 4, 3) for _ in range(2))
        self.recurrent = nn.GRU(8, 8, num_layers=2, dropout=0.5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.norm(x).split(2, dim=1)
        h = torch.cat([self.sides[0](a), self.sides[1](b)], 1).transpose(1, 2)
        return self.last(self.recurrent(h)[0][:, -1])


def test_every_layer_that_reads_the_sensors_takes_the_input_probability() -> None:
    network = Branches()
    x = torch.randn(3, 4, 9)
    converted = convert(network, drop_prob=(0.3, 0.4), input_drop_prob=0.1, example=x).eval()
    body = converted.body
    assert [side.drop_prob for side in body.sides] == [0.1, 0.1]
    assert (body.recurrent.drop_prob, body.recurrent.state_drop_prob) == (0.3, 0.3)
    assert (body.last.drop_prob, body.recurrent.dropout) == (0.4, 0.0)
    assert type(body.norm) is nn.BatchNorm1d
    assert all(p.requires_grad for p in body.parameters())
    assert converted.width == 7 * 8  # the GRU's states at 7 times, more than a side's 7 x 4
    torch.testing.assert_close(converted(x).mean, network.eval()(x))
    assert network.recurrent.dropout == 0.5
    with pytest.raises(InputError, match="3 values, the network 2 layers after the first"):
        convert(network, drop_prob=(0.1, 0.1, 0.1), example=x)


def test_a_dropout_before_other_layers_than_linear_ones_is_switched_off() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.read, self.drop = nn.Conv1d(2, 4, 1), nn.Dropout(0.5)
            self.turn, self.after = nn.GRU(4, 4, batch_first=True), nn.Dropout(0.5)
            self.last = nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = self.turn(self.drop(self.read(x)).transpose(1, 2))[0]
            return self.last(self.after(h[:, -1]))

    body = convert(Mixed(), drop_prob=0.2, example=torch.zeros(2, 2, 5)).body
    assert (body.drop.p, body.turn.drop_prob) == (0.0, 0.2)
    assert (body.after.p, body.last.drop_prob) == (0.2, 0.0)
    assert isinstance(body.turn, DropoutGRU)
    assert isinstance(body.last, DropoutLinear)


class Own(nn.GRU):
    def forward(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return super().forward(2 * x, hx)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.MultiheadAttention(4, 2), "'0' is a MultiheadAttention, which cannot be converted"),
        (nn.ConvTranspose1d(4, 4, 1), "'0' is a ConvTranspose1d, which.*accepted: Linear, Conv1d"),
        (nn.Conv3d(4, 4, 1), "'0' is a Conv3d"),
        (nn.RNN(4, 4), "'0' is a RNN"),
        (nn.GRUCell(4, 4), "'0' is a GRUCell"),
        (nn.Bilinear(4, 4, 4), "'0' is a Bilinear"),
        (nn.LSTM(4, 4, proj_size=2), "'0' is an LSTM with proj_size = 2"),
        (Own(4, 4), "'0' is a Own with a forward of its own"),
    ],
)
def test_what_cannot_be_converted_is_named(layer: nn.Module, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        convert(nn.Sequential(layer, nn.Linear(4, 1)))
