"""Networks traced into steps: those of a user's own, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rdeepsense.deploy.folded.graph import Graph
from rdeepsense.deploy.tracing import strided, trace
from rdeepsense.errors import InputError


class Own(nn.Module):
    """A network whose forward is a function of it and x."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor], **layers: nn.Module) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.does = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.does(self, x)


def kinds(network: nn.Module, shape: tuple[int, ...]) -> list[str]:
    """The steps of a network, which give what it gives for several rows at once."""
    torch.manual_seed(0)
    network = network.double().eval()
    nodes = trace(network, shape)
    graph = Graph(shape, np.zeros(shape[-1]), np.ones(shape[-1]), nodes)
    x = torch.randn(5, *shape, dtype=torch.float64)
    with torch.no_grad():
        wanted = network(x).reshape(5, -1).numpy()
    np.testing.assert_allclose(graph.raw(x.numpy()), wanted, atol=1e-12)
    return [node.kind for node in nodes]


def test_norms_and_relu_go_into_what_they_follow() -> None:
    norm = nn.BatchNorm1d(6)
    norm.running_mean, norm.running_var = torch.randn(6), torch.rand(6) + 0.5
    network = nn.Sequential(
        nn.Conv1d(5, 6, 3, 2, 1), norm, nn.ReLU(), nn.Flatten(), nn.Dropout(), nn.Linear(24, 2)
    )
    assert kinds(network, (5, 7)) == ["convolution", "linear"]
    first = nn.Sequential(nn.Conv1d(5, 6, 3), nn.ReLU(inplace=True), norm, nn.Flatten())
    assert kinds(nn.Sequential(first, nn.Linear(30, 2)), (5, 7)) == [
        "convolution",
        "affine",
        "linear",
    ]


FORWARDS: list[tuple[Callable[[Any, Tensor], Tensor], list[str]]] = [
    (lambda own, x: own.out(x.flatten(1)), ["linear"]),
    (lambda own, x: own.out(x.transpose(1, 2).reshape(len(x), -1)), ["strided", "linear"]),
    (lambda own, x: own.out(x.permute(0, 2, 1).flatten(1)), ["strided", "linear"]),
    (
        lambda own, x: own.out(torch.cat([x[:, ::2], x[:, 1::2]], 1).flatten(1)),
        ["strided", "strided", "concatenated", "linear"],
    ),
    (lambda own, x: own.out(x.flip(1).view(x.shape[0], -1)), ["strided", "linear"]),
    (lambda own, x: own.out(functional.relu(x).flatten(1)), ["activation", "linear"]),
    (lambda own, x: own.out((x + x.tanh()).flatten(1)), ["activation", "sum", "linear"]),
    (
        lambda own, x: own.out((x.mean(1, keepdim=True).expand_as(x)).flatten(1)),
        ["mean", "strided", "linear"],
    ),
    (lambda own, x: own.out(torch.stack(x.unbind(1), 1).flatten(1)), ["concatenated", "linear"]),
]


@pytest.mark.parametrize(("forward", "wanted"), FORWARDS)
def test_functions_of_a_forward(forward: Any, wanted: list[str]) -> None:
    found = kinds(Own(forward, out=nn.Linear(12, 2)), (4, 3))
    assert [kind for kind in found if kind != "strided" or kind in wanted] == wanted


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_recurrent_layers(kind: Any, both: bool, early: bool) -> None:
    layer = kind(3, 4, num_layers=2, batch_first=early, bidirectional=both)

    def forward(own: Any, x: Tensor) -> Tensor:
        first = torch.zeros(2 * (1 + both), len(x), 4, dtype=x.dtype)
        start = first if kind is nn.GRU else (first, first)
        states, last = own.turn(x if early else x.transpose(0, 1), start)
        last = last if kind is nn.GRU else last[0]
        end = states[:, -1] if early else states[-1]
        return own.out(torch.cat([end, last.transpose(0, 1).flatten(1)], 1))

    wide = 4 * (1 + both)
    found = kinds(Own(forward, turn=layer, out=nn.Linear(3 * wide, 2)), (6, 3))
    assert found.count(kind.__name__.lower()) == 2 * (1 + both)


class Reading(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if float(x.mean()) > 0 else x.flip(1)


REFUSED: list[tuple[nn.Module, str]] = [
    (nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.GELU(), nn.Linear(5, 2)),
     r"layer '2' \(GELU\) cannot be exported: its forward calls gelu; accepted: Linear, Conv1d, "),
    (nn.Sequential(nn.Conv1d(4, 2, 3, padding=1, padding_mode="circular"), nn.Flatten()),
     r"layer '0' \(Conv1d\) cannot be exported: padding_mode='circular' is not 'zeros'"),
    (nn.Sequential(nn.MaxPool1d(3, padding=1), nn.Flatten()), "pooling with padding"),
    (nn.Sequential(nn.AdaptiveAvgPool1d(2), nn.Flatten()), "adaptive pooling to 2, not to 1"),
    (nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False)), "depends on the other rows"),
    (nn.Sequential(Reading(), nn.Linear(3, 1)), r"layer '0' \(Reading\).*reads numbers of a row"),
    (Own(lambda own, x: own.out(x @ own.out.weight.T), out=nn.Linear(3, 3)), "calls (__)?matmul"),
    (Own(lambda own, x: own.turn(x)[1][1][-1], turn=nn.LSTM(3, 3, batch_first=True)),
     "a tensor that no exported step makes"),
    (Own(lambda own, x: own.turn(x, x[:, :1].transpose(0, 1).contiguous())[0],
         turn=nn.GRU(3, 3, batch_first=True)), "begins with states that are not zero"),
    (nn.Sequential(nn.LSTM(3, 4, proj_size=2, batch_first=True)), "proj_size=2"),
]  # fmt: skip


@pytest.mark.parametrize(("network", "message"), REFUSED)
def test_what_cannot_be_exported_is_named(network: nn.Module, message: str) -> None:
    with pytest.raises(InputError, match=message):
        trace(network, (4, 3))


def test_strides_are_found_for_any_view() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = tuple(rng.integers(1, 5, 4))
        view = np.arange(int(np.prod(shape))).reshape(shape)
        cut = tuple(
            slice(int(rng.integers(0, n)), n, int(rng.integers(1, 3)))
            if rng.random() < 0.5
            else slice(None, None, int(rng.choice([1, -1])))
            for n in shape
        )
        index = view[cut].transpose(rng.permutation(4)).ravel()
        found = strided(0, index)
        assert found is not None
        assert found.size(view.size) == len(index)
        assert np.array_equal(found.index, index)
    assert strided(0, np.array([0, 1, 3, 4, 5, 9])) is None
