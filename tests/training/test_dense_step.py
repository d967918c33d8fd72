"""The written-out step against autograd's: the same gradients, the same weights, its own masks."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from rdeepsense.dropout import convert
from rdeepsense.heads import HEADS
from rdeepsense.networks import Periodic, dense
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import DenseBank, Rows, Schedule, stack
from rdeepsense.training import step as embedding_step
from rdeepsense.training.bank import Masks
from rdeepsense.training.step import DenseStep, Step, step_for

SCHEDULE = Schedule(60, 32, 5e-3, 20, 10, seed=3)


def make(
    members: int,
    likelihood: str,
    drop_prob: float = 0.0,
    inputs: float = 0.0,
    hidden=(8, 6),
    periodic: Periodic | None = None,
) -> DenseBank:
    torch.manual_seed(7)
    networks = []
    for _ in range(members):
        built = dense(4, hidden, 3) if periodic is None else periodic.build((4,), 3, 0)
        networks.append(convert(built, likelihood, drop_prob=drop_prob, input_drop_prob=inputs))
    bank = stack(networks)
    assert isinstance(bank, DenseBank)
    return bank


def rows_for(likelihood: str, weight: Tensor | None = None) -> Rows:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(96, 4, generator=generator)
    classes = torch.randint(0, 3, (96,), generator=generator)
    targets = torch.randn(96, 3, generator=generator)
    return Rows(x, classes if likelihood == "categorical" else targets, weight)


def both(
    likelihood: str,
    members: int,
    weight: Tensor | None = None,
    beta: float = 0.0,
    hidden=(8, 6),
    periodic: Periodic | None = None,
) -> tuple[DenseStep, Step]:
    """Two steps on equal banks, with alphas and weights large enough for clipping."""
    made = []
    for kind in (DenseStep, Step):
        bank = make(members, likelihood, hidden=hidden, periodic=periodic)
        rows = rows_for(likelihood, weight)
        rule = ScoringRule([0.1 + 0.3 * k for k in range(members)], beta)
        step = kind(bank, rule, [0.05] * members, rows, SCHEDULE)
        step.shuffle(window=0, position=0)
        for own in bank.weights:
            own.data.mul_(3)
        made.append(step)
    return made[0], made[1]


def assert_equal_after(steps: tuple[Step, Step], count: int) -> None:
    for _ in range(count):
        for step in steps:
            step()
    ours, theirs = (dict(step.bank.named_parameters()) for step in steps)
    assert list(ours) == list(theirs)
    for name, own in ours.items():
        torch.testing.assert_close(own, theirs[name], rtol=2e-4, atol=2e-6, msg=name)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("likelihood", HEADS)
def test_three_steps_equal_those_of_autograd(likelihood: str, members: int) -> None:
    assert_equal_after(both(likelihood, members), 3)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize(
    "spec", [Periodic((8, 6), 5, 3, 0.5), Periodic((7,), 2, 9), Periodic((5, 6, 7), 1, 1)], ids=str
)
def test_periodic_embeddings(spec: Periodic, members: int) -> None:
    weight = torch.rand(members, 96, generator=torch.Generator().manual_seed(0)) * 2
    steps = both("student", members, weight, periodic=spec)
    for step in steps:
        step.rows.x[::5] *= 60  # some lie beyond the reach
    assert type(steps[0]) is DenseStep
    assert_equal_after(steps, 3)


@pytest.mark.parametrize("together", [1, 2])
def test_embeddings_a_few_members_at_a_time(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_step, "TOGETHER", together * 4 * 10 * SCHEDULE.batch_size)
    steps = both("gaussian", 3, periodic=Periodic((8,), 5, 3))
    assert len(steps[0]._embedding._parts) == (3 if together == 1 else 2)
    assert_equal_after(steps, 3)


@pytest.mark.parametrize("hidden", [(), (5,), (5, 6, 7, 8)])
def test_any_number_of_layers(hidden: tuple[int, ...]) -> None:
    assert_equal_after(both("gaussian", 2, hidden=hidden), 3)


@pytest.mark.parametrize("shape", [(96,), (2, 96)])
def test_rows_and_members_may_weigh_differently(shape: tuple[int, ...]) -> None:
    weight = torch.rand(shape, generator=torch.Generator().manual_seed(0)) * 2
    assert_equal_after(both("student", 2, weight), 3)


def test_beta_weighs_the_likelihood() -> None:
    assert_equal_after(both("gaussian", 2, beta=0.5), 3)


def test_clipping_is_each_members_own() -> None:
    steps = both("gaussian", 2)
    for step in steps:
        for weight in step.bank.weights:
            weight.data[0].mul_(0.1)
        step.bank.weights[0].data[1].mul_(100)
    steps[0]()
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in steps[0]._gradients]).norm(dim=0)
    assert norms[1].item() == pytest.approx(5.0, rel=1e-3)
    assert norms[0] < 4
    steps[1]()
    for own, peer in zip(steps[0].bank.parameters(), steps[1].bank.parameters(), strict=True):
        torch.testing.assert_close(own, peer, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("inputs", [0.0, 0.3])
def test_gradients_under_dropout_are_those_of_the_masks_drawn(inputs: float) -> None:
    """The same masks, put into the network as factors, give autograd the same gradient."""
    bank = make(2, "gaussian", drop_prob=0.4, inputs=inputs)
    rows, rule = rows_for("gaussian"), ScoringRule([0.2, 0.6])
    step = DenseStep(bank, rule, [0.0, 0.0], rows, SCHEDULE)
    step.shuffle(window=0, position=0)
    before = [p.detach().clone().requires_grad_() for p in bank.parameters()]
    step()
    weights, biases = before[:3], before[3:]
    batch = step.order[0]
    h = rows.x[batch].expand(2, -1, -1)
    for layer, mask in enumerate(step._masks.of(0)):
        assert (mask is None) == (layer == 0 and not inputs)
        h = h if mask is None else h * mask
        h = torch.baddbmm(biases[layer], h, weights[layer])
        h = h.relu() if layer < 2 else h
    rule(bank.head(h), rows.y[batch]).sum().backward()
    for got, expected in zip(step._gradients, before, strict=True):
        torch.testing.assert_close(got, expected.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("members", [1, 2])
def test_gradients_of_embeddings_under_dropout(members: int) -> None:
    bank = make(members, "gaussian", 0.4, 0.3, periodic=Periodic((8, 6), 5, 3))
    rows, rule = rows_for("gaussian"), ScoringRule([0.2, 0.6][:members])
    step = DenseStep(bank, rule, [0.0] * members, rows, SCHEDULE)
    step.shuffle(window=0, position=0)
    before = {name: p.detach().clone() for name, p in bank.named_parameters()}
    step()
    with torch.no_grad():
        for name, parameter in bank.named_parameters():
            parameter.copy_(before[name])
    batch = step.order[0]
    h = bank.embedding(rows.x[batch].expand(members, -1, -1))
    for layer, mask in enumerate(step._masks.of(0)):
        h = torch.baddbmm(bank.biases[layer], h * mask, bank.weights[layer])
        h = h.relu() if layer < 2 else h
    rule(bank.head(h), rows.y[batch]).sum().backward()
    embedding = bank.embedding
    for found, own in zip(
        step._of_embedding, (embedding.frequency, embedding.weight, embedding.bias), strict=True
    ):
        assert own.grad.abs().max() > 1e-4
        torch.testing.assert_close(found, own.grad, rtol=1e-4, atol=1e-6)


def test_frequencies_do_not_decay() -> None:
    for kind in (DenseStep, Step):
        bank = make(2, "gaussian", periodic=Periodic((8,), 5, 3))
        rows = rows_for("gaussian")
        before = {name: p.detach().clone() for name, p in bank.named_parameters()}
        schedule = replace(SCHEDULE, learning_rate=1e-3)
        step = kind(bank, ScoringRule([0.1] * 2), [100.0] * 2, rows, schedule)
        step.shuffle(0, 0)
        step()
        moved = {name: (p / before[name] - 1).median() for name, p in bank.named_parameters()}
        assert moved["embedding.weight"] < -0.05
        assert abs(moved["embedding.frequency"]) < 0.01


def test_masks_keep_with_the_right_probability_for_each_member() -> None:
    torch.manual_seed(0)
    networks = [convert(dense(4, (50,), 1), drop_prob=p) for p in (0.0, 0.1, 0.5)]
    masks = Masks(stack(networks), 40, [4, 50], seed=1)
    drawn = torch.stack([masks.of(step)[1] for step in range(100)])
    assert masks.of(0)[0] is None  # the inputs are never dropped here
    for member, drop_prob in enumerate((0.0, 0.1, 0.5)):
        own = drawn[:, member]
        values = own.unique().tolist()
        assert values == pytest.approx([1.0] if not drop_prob else [0.0, 1 / (1 - drop_prob)])
        kept = (own > 0).double().mean().item()
        assert kept == pytest.approx(1 - drop_prob, abs=4 * (0.25 / own.numel()) ** 0.5)


def test_masks_depend_on_the_step_alone() -> None:
    bank = make(2, "gaussian", drop_prob=0.3)
    first, second = (Masks(bank, 32, [4, 8, 6], seed=5, entries=5_000) for _ in range(2))
    assert 1 < first.block < 10
    forward = [[m if m is None else m.clone() for m in first.of(k)] for k in range(20)]
    for step in (19, 3, 4, 0, 11):
        for one, other in zip(forward[step], second.of(step), strict=True):
            assert (one is None and other is None) or torch.equal(one, other)
    assert not torch.equal(forward[0][1], forward[first.block][1])
    assert not torch.equal(forward[0][1], forward[1][1])
    other = Masks(bank, 32, [4, 8, 6], seed=6, entries=5_000)
    assert not torch.equal(forward[0][1], other.of(0)[1])


def test_a_step_can_be_taken_up_anywhere() -> None:
    whole = DenseStep(
        make(2, "student", 0.2), ScoringRule([0.5] * 2), [0.0] * 2, rows_for("student"), SCHEDULE
    )
    whole.shuffle(0, 0)
    whole()
    whole()
    resumed = DenseStep(
        make(2, "student", 0.2), ScoringRule([0.5] * 2), [0.0] * 2, rows_for("student"), SCHEDULE
    )
    with torch.no_grad():
        for to, of in zip(resumed.parameters, whole.parameters, strict=True):
            to.copy_(of)
    for to, of in zip(resumed.first + resumed.second, whole.first + whole.second, strict=True):
        to.copy_(of)
    resumed.go_to(2)
    resumed.shuffle(0, 2)
    whole()
    resumed()
    for one, other in zip(whole.parameters, resumed.parameters, strict=True):
        assert torch.equal(one, other)


def test_what_it_cannot_do_is_left_to_autograd() -> None:
    rows, rule = rows_for("gaussian"), ScoringRule([0.5] * 2)
    relu = make(2, "gaussian")
    assert type(step_for(relu, rule, [0.1, 0.1], rows, SCHEDULE)) is DenseStep
    assert type(step_for(make(2, "gaussian"), rule, [0.1, 0.2], rows, SCHEDULE)) is Step
    attacked = replace(SCHEDULE, adversarial=0.1)
    assert type(step_for(make(2, "gaussian"), rule, [0.1, 0.1], rows, attacked)) is Step
    assert type(step_for(make(2, "gaussian"), ScoringRule(0.5), [0.1, 0.1], rows, SCHEDULE)) is Step
    frozen = make(2, "gaussian")
    frozen.weights[0].requires_grad_(False)
    assert type(step_for(frozen, rule, [0.1, 0.1], rows, SCHEDULE)) is Step
    for layers in (
        [nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)],
        [nn.Linear(4, 8), nn.ReLU(), nn.ReLU(), nn.Linear(8, 3)],
        [nn.Linear(4, 8), nn.Linear(8, 3)],
    ):
        other = stack([convert(nn.Sequential(*layers))] * 2)
        assert type(step_for(other, rule, [0.1, 0.1], rows, SCHEDULE)) is Step
