"""The moving average of the weights: its formula, where it stands in, and that it is kept."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from rdeepsense.dropout import convert
from rdeepsense.networks import dense
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Bank, Rows, Schedule, stack, train
from rdeepsense.training.schedule import MovingAverage


def bank() -> Bank:
    torch.manual_seed(0)
    return stack([convert(dense(3, (8,), 1), drop_prob=0.1)])


def test_by_hand() -> None:
    """4 of the last min(1000 / 50, step / 5) steps come in at a time."""
    given = bank()
    weight: nn.Parameter = given.weights[0]  # type: ignore[index, assignment]
    average = MovingAverage(given, steps=1_000)
    weight.data.fill_(1.0)
    average.update(step=4)  # the first steps replace it
    assert torch.equal(average.tensors["weights.0"], weight)
    weight.data.fill_(2.0)
    average.update(step=50)  # 4 / 10 of the way
    assert average.tensors["weights.0"].unique().item() == pytest.approx(1.4)
    weight.data.fill_(3.4)
    average.update(step=900)  # 4 / 20
    assert average.tensors["weights.0"].unique().item() == pytest.approx(1.8)
    with average.in_place():
        assert weight.unique().item() == pytest.approx(1.8)
    assert weight.unique().item() == pytest.approx(3.4)


def test_what_is_kept_is_the_average(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, torch.Tensor]] = []
    update = MovingAverage.update

    def spy(self: Any, step: int) -> None:
        seen.append((step, trained.weights[0].detach().clone()))  # type: ignore[index, union-attr, operator]
        update(self, step)

    monkeypatch.setattr(MovingAverage, "update", spy)
    trained = bank()
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    rows = Rows(x, x[:, :1].sin())
    schedule = Schedule(150, 32, 1e-2, evaluate_every=150, patience=9, seed=0)
    train(trained, ScoringRule([0.5]), [0.0], rows, rows, schedule)
    assert [step for step, _ in seen] == [*range(4, 150, 4), 150]
    expected = torch.zeros_like(seen[0][1])
    for step, weight in seen:
        expected += min(1.0, 4 / min(3.0, step / 5)) * (weight - expected)
    torch.testing.assert_close(trained.kept["weights.0"], expected)


def test_a_long_run_looks_back_and_keeps_another_step_than_the_last() -> None:
    trained = bank()
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    rows = Rows(x, x[:, :1].sin())
    schedule = Schedule(2_000, 32, 1e-2, 300, patience=9, seed=0, stop_at=300)
    train(trained, ScoringRule([0.5]), [0.0], rows, rows, schedule)
    kept, last = trained.kept["weights.0"], trained.weights[0]  # type: ignore[index]
    assert 1e-4 < (kept - last).abs().max().item() < 0.5
