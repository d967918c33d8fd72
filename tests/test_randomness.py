"""Generators of one's own: numbers of a seed alone, and torch's default one put back."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rdeepsense import _torch
from rdeepsense.dropout import convert
from rdeepsense.dropout.layers import DropoutEntries, dropped
from rdeepsense.networks import Dense
from rdeepsense.networks.base import built

CPU = _torch.CPU


class Sevens(nn.Module):
    """A module of the user's own."""

    def forward(self, x: Tensor) -> Tensor:
        return 7 * x


def test_outside_of_a_context_layers_draw_from_the_default_generator() -> None:
    assert _torch.current(CPU) is None
    x = torch.ones(50)
    torch.manual_seed(3)
    wanted = functional.dropout(x, 0.4)
    torch.manual_seed(3)
    assert torch.equal(dropped(x, 0.4), wanted)  # the same numbers as torch's own dropout
    before = torch.get_rng_state()
    with _torch.drawing(3):
        assert torch.equal(dropped(x, 0.4), wanted)
    assert torch.equal(torch.get_rng_state(), before)
    assert _torch.current(CPU) is None


def test_contexts_nest_and_belong_to_their_thread() -> None:
    with _torch.drawing(0):
        outer = _torch.current(CPU)
        with _torch.drawing(1):
            assert _torch.current(CPU) is not outer
        assert _torch.current(CPU) is outer
        seen: list[object] = []
        thread = threading.Thread(target=lambda: seen.append(_torch.current(CPU)))
        thread.start()
        thread.join()
        assert seen == [None]
        assert _torch.current(torch.device("cuda")) is None


def test_the_default_generator_is_borrowed_and_put_back_even_after_an_error() -> None:
    before = torch.get_rng_state()
    found = []

    def fail() -> None:
        with _torch.drawing(5, elsewhere=True):
            found.append(torch.rand(3))
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*found)
    assert torch.equal(found[0], torch.rand(3, generator=_torch.seeded(5)))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_states_of_a_context_go_on_where_they_were_saved(elsewhere: bool) -> None:
    x = torch.ones(100)

    def draws() -> list[Tensor]:
        return [dropped(x, 0.5), torch.rand(2) if elsewhere else x]

    with _torch.drawing(1, elsewhere=elsewhere):
        draws()
        saved = {name: state.clone() for name, state in _torch.states().items()}
        wanted = draws()
    with _torch.drawing(2, elsewhere=elsewhere):
        _torch.restore(saved)
        assert all(map(torch.equal, draws(), wanted))
    assert len(saved) == 1 + elsewhere


def test_first_weights_are_those_of_the_seed() -> None:
    """As torch draws them after manual_seed, for each kind of layer that has weights."""

    def layers() -> nn.Module:
        parts = [nn.Linear(3, 4), nn.Conv1d(3, 4, 2), nn.Conv2d(2, 3, 2), nn.GRU(3, 4, 2)]
        return nn.ModuleList([*parts, nn.LSTM(3, 4), nn.Embedding(3, 2), nn.BatchNorm1d(3)])

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        wanted = layers().state_dict()
    before = torch.get_rng_state()
    with _torch.initialising(11):
        found = layers().state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    first, second, again = (built(Dense((4,)), (3,), 1, member, 0) for member in (0, 1, 0))
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, second[0].weight)


@pytest.mark.parametrize(
    ("module", "elsewhere"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.ReLU()), False),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)), True),
        (nn.Sequential(nn.Linear(2, 2), nn.RReLU()), True),
        (nn.Sequential(nn.Linear(2, 2), Sevens()), True),
    ],
)
def test_modules_that_may_draw_elsewhere(module: nn.Module, elsewhere: bool) -> None:
    assert _torch.draws_elsewhere(module.modules()) == elsewhere


def test_a_converted_dropout_draws_from_the_context() -> None:
    network = nn.Sequential(nn.Linear(2, 9), nn.ReLU(), nn.Dropout(0.1), nn.Linear(9, 1))
    converted = convert(network, drop_prob=0.5).train()
    assert isinstance(converted.body[2], DropoutEntries)
    assert type(network[2]) is nn.Dropout
    assert not converted.draws_elsewhere
    mixed = convert(nn.Sequential(nn.Linear(2, 1), Sevens(), nn.Linear(1, 1)))
    assert mixed.train().draws_elsewhere
    assert not mixed.eval().draws_elsewhere
    for same in (copy.deepcopy(converted), pickle.loads(pickle.dumps(converted)), converted.twin()):
        found = []
        for each in (converted, same):
            with _torch.drawing(4):
                found.append(each(torch.ones(20, 2)).mean)
        assert torch.equal(*found)


def test_a_twin_has_its_own_modes_and_the_same_weights() -> None:
    network = convert(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))).train()
    twin = network.twin().eval()
    assert all(module.training for module in network.modules())
    assert all(a is b for a, b in zip(network.parameters(), twin.parameters(), strict=True))
