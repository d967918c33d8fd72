"""Banks: stacked members compute what each computes alone, and keep what they are told to."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.errors import InputError
from rdeepsense.heads import HEADS
from rdeepsense.networks import Periodic, dense
from rdeepsense.training import Bank, DenseBank, ModuleBank, stack


def networks(
    members: int = 3, likelihood: str = "gaussian", drop_prob: float = 0.0
) -> list[StochasticNetwork]:
    made = []
    for member in range(members):
        torch.manual_seed(member)
        made.append(convert(dense(4, (8, 6), 2), likelihood, drop_prob=drop_prob))
    return made


@pytest.mark.parametrize("likelihood", HEADS)
@pytest.mark.parametrize("kind", [DenseBank, ModuleBank])
def test_each_member_computes_what_it_computes_alone(kind: type[Bank], likelihood: str) -> None:
    members = networks(likelihood=likelihood)
    x = torch.randn(10, 4)
    together = kind(members).eval()(x)
    for k, member in enumerate(members):
        for ours, alone in zip(together, member.eval()(x), strict=True):
            torch.testing.assert_close(ours[k], alone)


def test_gradients_of_both_banks_agree() -> None:
    members, x, y = networks(), torch.randn(10, 4), torch.randn(10, 2)
    banks = DenseBank(members), ModuleBank(members)
    for bank in banks:
        bank(x).nll(y).sum().backward()
        bank.clip_gradients([p.grad for p in bank.parameters()], 0.5)
    for k in range(3):
        layer = banks[1].members[k].body[0]
        torch.testing.assert_close(banks[0].weights[0].grad[k].T, layer.weight.grad)
        torch.testing.assert_close(banks[0].biases[0].grad[k, 0], layer.bias.grad)


@pytest.mark.parametrize("kind", [DenseBank, ModuleBank])
def test_clipping_is_per_member(kind: type[Bank]) -> None:
    bank = kind(networks(2))
    loss = bank(torch.randn(10, 4)).nll(torch.randn(10, 2)).mean((1, 2))
    (loss * torch.tensor([1e-3, 1e6])).sum().backward()
    before = copy.deepcopy([p.grad for p in bank.parameters()])
    bank.clip_gradients([p.grad for p in bank.parameters()], 5.0)
    norms = member_norms(bank)
    assert norms[1] == pytest.approx(5.0, rel=1e-4)
    # the small gradient of the first member is left as it was
    first = [(a, b) for a, b in zip(bank.parameters(), before, strict=True)]
    if kind is DenseBank:
        assert all(torch.equal(p.grad[0], b[0]) for p, b in first)
    else:
        assert all(torch.equal(p.grad, b) for p, b in first[: len(first) // 2])


def member_norms(bank: Bank) -> list[float]:
    if isinstance(bank, DenseBank):
        squares = [p.grad.flatten(1).square().sum(1) for p in bank.parameters()]
        return torch.stack(squares).sum(0).sqrt().tolist()
    return [
        float(torch.stack([p.grad.square().sum() for p in m.parameters()]).sum().sqrt())
        for m in bank.members
    ]


@pytest.mark.parametrize("kind", [DenseBank, ModuleBank])
def test_decay_is_per_member_and_on_weights_only(kind: type[Bank]) -> None:
    members = networks(2, "student")
    bank = kind(members)
    bank.decay_weights(torch.tensor([1.0, 0.5]))
    bank.keep(torch.tensor([True, True]))
    for factor, before, after in zip((1.0, 0.5), members, bank.networks(), strict=True):
        for name, value in after.named_parameters():
            expected = before.get_parameter(name)
            torch.testing.assert_close(value, expected * (factor if value.ndim > 1 else 1.0))


@pytest.mark.parametrize("kind", [DenseBank, ModuleBank])
def test_kept_members_come_back_as_networks(kind: type[Bank]) -> None:
    members = networks(likelihood="student")
    bank = kind(members)
    bank.keep(torch.tensor([True, True, True]))
    with torch.no_grad():
        for parameter in bank.parameters():
            parameter.add_(1.0)
    bank.keep(torch.tensor([False, True, False]))
    moved = [not torch.equal(a.body[0].weight, b.body[0].weight) for a, b in both(members, bank)]
    assert moved == [False, True, False]
    x = torch.randn(3, 4)
    bank.eval()
    torch.testing.assert_close(bank.networks()[1](x).loc, bank(x).loc[1])


def both(
    members: list[StochasticNetwork], bank: Bank
) -> list[tuple[StochasticNetwork, StochasticNetwork]]:
    return list(zip(members, bank.networks(), strict=True))


def test_each_member_drops_with_its_own_probability() -> None:
    torch.manual_seed(0)
    members = [convert(dense(1, (1_000,), 1), drop_prob=p) for p in (0.0, 0.2, 0.7)]
    bank = DenseBank(members).train()
    h = torch.ones(3, 20, 1_000)
    dropped = bank._drop(h, 1)
    shares = (dropped == 0).double().mean((1, 2)).tolist()
    assert shares == pytest.approx([0.0, 0.2, 0.7], abs=0.02)
    for k, p in enumerate((0.0, 0.2, 0.7)):
        assert dropped[k].max().item() == pytest.approx(1 / (1 - p))
    assert torch.equal(bank.eval()._drop(h, 1), h)
    assert torch.equal(bank.train()._drop(h, 0), h)  # the inputs


def test_a_dropout_module_is_part_of_the_bank() -> None:
    network = nn.Sequential(nn.Linear(4, 50), nn.ReLU(), nn.Dropout(0.1), nn.Linear(50, 1))
    bank = stack([convert(network, drop_prob=0.5)])
    assert isinstance(bank, DenseBank)
    assert bank.keep_prob_1.flatten().tolist() == [0.5]


def test_stack_takes_the_fast_bank_where_it_can() -> None:
    assert isinstance(stack(networks()), DenseBank)
    normed = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    assert isinstance(stack([convert(normed)]), ModuleBank)
    with pytest.raises(InputError, match="at least one network"):
        stack([])


@pytest.mark.parametrize("members", [1, 3])
def test_periodic_embeddings_are_stacked_and_come_back(members: int) -> None:
    made = []
    for member in range(members):
        torch.manual_seed(member)
        made.append(convert(Periodic((8, 6), 5, 3).build((4,), 2, 0), drop_prob=0.1).eval())
    bank = stack(made).eval()
    assert isinstance(bank, DenseBank)
    assert (bank.width, bank.numbers) == (8, 4 * 10)
    x = 40 * torch.randn(10, 4)
    own = torch.randn(members, 10, 4)
    together, each = bank(x), bank(own, each=True)
    for k, member in enumerate(made):
        for ours, alone in zip(together, member(x), strict=True):
            torch.testing.assert_close(ours[k], alone, rtol=1e-4, atol=1e-5)
        for ours, alone in zip(each, member(own[k]), strict=True):
            torch.testing.assert_close(ours[k], alone, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        bank.embedding.frequency.add_(1.0)
    bank.keep(torch.ones(members, dtype=torch.bool))
    for before, after in zip(made, bank.networks(), strict=True):
        old, new = before.body[0], after.body[0]
        torch.testing.assert_close(new.frequency, old.frequency + 1)
        assert torch.equal(new.weight, old.weight)
        assert torch.equal(new.bias, old.bias)
        assert torch.equal(after.body[1].weight, before.body[1].weight)
