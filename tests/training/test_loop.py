"""The loop: reproducible to the bit, best step kept, stops when told, says how far it is."""

from __future__ import annotations

import copy
import io
import math
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rdeepsense._progress import Bar, Lines, Silent, progress_for
from rdeepsense.dropout import convert
from rdeepsense.errors import CheckpointError, TrainingError
from rdeepsense.networks import dense
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Bank, Rows, Schedule, TrainingRecord, stack, train, validation_nll
from rdeepsense.training.step import Step


def table() -> tuple[torch.Tensor, torch.Tensor]:
    own = torch.Generator().manual_seed(0)
    X = torch.randn(300, 3, generator=own)
    return X, X[:, :1].sin() + 0.1 * torch.randn(300, 1, generator=own)


X, Y = table()
ROWS, HELD = Rows(X[:240], Y[:240]), Rows(X[240:], Y[240:])
SCHEDULE = Schedule(
    steps=60, batch_size=32, learning_rate=5e-3, evaluate_every=10, patience=9, seed=3
)


def bank(members: int = 2, drop_prob: float = 0.1) -> Bank:
    made = []
    for member in range(members):
        torch.manual_seed(member)
        made.append(convert(dense(3, (16,), 1), drop_prob=drop_prob))
    return stack(made)


def run(
    schedule: Schedule = SCHEDULE, rows: Rows = ROWS, **options: object
) -> tuple[Bank, TrainingRecord]:
    trained = bank()
    rule = ScoringRule([0.5] * trained.size)
    return trained, train(trained, rule, [1e-2, 0.0], rows, HELD, schedule, **options)  # type: ignore[arg-type]


def assert_same(a: Bank, b: Bank) -> None:
    assert a.kept.keys() == b.kept.keys()
    assert all(torch.equal(a.kept[name], b.kept[name]) for name in a.kept)
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_same_seed_same_bits_and_the_callers_random_numbers_are_left_alone() -> None:
    torch.manual_seed(99)
    expected = torch.rand(3)
    first = run()[0]
    torch.manual_seed(99)
    second = bank()
    torch.manual_seed(99)
    train(second, ScoringRule([0.5, 0.5]), [1e-2, 0.0], ROWS, HELD, SCHEDULE)
    assert torch.equal(torch.rand(3), expected)
    assert_same(first, second)
    other = run(replace(SCHEDULE, seed=4))[0]
    assert not torch.equal(first.kept["weights.0"], other.kept["weights.0"])


def test_the_best_step_is_kept_not_the_last() -> None:
    trained, record = run(replace(SCHEDULE, steps=400, learning_rate=0.1, patience=99))
    history = torch.tensor(record.history)
    assert record.best_nll == pytest.approx(history.min(0).values.tolist())
    best = [record.evaluated_at[i] for i in history.argmin(0).tolist()]
    assert record.best_step == best
    kept = stack(trained.networks())
    assert validation_nll(kept, HELD).tolist() == pytest.approx(record.best_nll, rel=1e-5)


def test_members_judged_together_share_their_best_step() -> None:
    trained = bank(4)
    schedule = replace(SCHEDULE, steps=200, learning_rate=0.05, patience=99, together=2)
    record = train(trained, ScoringRule([0.5] * 4), [0.0] * 4, ROWS, HELD, schedule)
    assert record.best_step[0] == record.best_step[1]
    assert record.best_step[2] == record.best_step[3]
    kept = validation_nll(stack(trained.networks()), HELD)
    assert kept[:2].mean().item() == pytest.approx(record.best_nll[0], rel=1e-5)
    assert kept[2:].mean().item() == pytest.approx(record.best_nll[2], rel=1e-5)


def test_a_member_that_does_not_improve_stops_early() -> None:
    trained = bank()
    schedule = replace(SCHEDULE, steps=2_000, evaluate_every=5, patience=3, learning_rate=1e-6)
    flipped = Rows(HELD.x, -50 * HELD.y)  # training makes these worse
    record = train(trained, ScoringRule([0.5, 0.5]), [0.0, 0.0], ROWS, flipped, schedule)
    assert record.steps < 2_000
    assert max(record.best_step) + 3 * 5 <= record.steps


def test_members_are_trained_with_their_own_alpha() -> None:
    """Members that differ in alpha alone end apart; with equal alphas they end alike."""
    torch.manual_seed(0)
    twin = convert(dense(3, (16,), 1), drop_prob=0.0)
    for alphas, alike in (([0.2, 0.2], True), ([0.0, 0.8], False)):
        twins = stack([twin, twin])
        train(twins, ScoringRule(alphas), [0.0, 0.0], ROWS, HELD, SCHEDULE)
        weights = twins.kept["weights.0"]
        assert torch.allclose(weights[0], weights[1]) == alike


def test_weights_per_row_and_rows_of_weight_zero() -> None:
    wrong = Rows(
        torch.cat([ROWS.x, ROWS.x]),
        torch.cat([ROWS.y, ROWS.y + 100]),
        torch.cat([torch.full((240,), 2.0), torch.zeros(240)]),
    )
    _, record = run(replace(SCHEDULE, steps=300), rows=wrong)
    _, spoilt = run(replace(SCHEDULE, steps=300), rows=replace(wrong, weight=None))
    assert record.best_nll[0] < 0.5 < 1.0 < spoilt.best_nll[0]


def test_validation_nll_by_hand_with_weights() -> None:
    trained = bank(1).eval()
    weight = torch.arange(60.0)
    nll = trained(HELD.x).nll(HELD.y).detach()[0, :, 0].double()
    expected = (nll * weight).sum() / weight.sum()
    got = validation_nll(trained, Rows(HELD.x, HELD.y, weight))
    assert got.item() == pytest.approx(expected.item(), rel=1e-6)


def test_every_row_is_seen_once_an_epoch() -> None:
    step = Step(bank(), ScoringRule([0.5, 0.5]), [0.0, 0.0], ROWS, SCHEDULE)
    step.shuffle(window=0, position=0)
    first = step.order.clone()
    assert first.shape == (7, 32)  # 240 // 32 batches
    assert len(set(first.flatten().tolist())) == 7 * 32
    step.shuffle(window=1, position=0)
    assert not torch.equal(first, step.order)
    step.shuffle(window=0, position=3)
    assert torch.equal(first, step.order)
    assert step.position.item() == 3


def test_a_step_is_what_torch_makes_of_it() -> None:
    """Without dropout the steps are AdamW's with clipping, a cosine rate and decay on weights."""
    trained = stack([convert(dense(3, (16,), 1), drop_prob=0.0)])
    rates = SCHEDULE.learning_rates()
    step = Step(trained, ScoringRule([0.3]), [0.1], ROWS, SCHEDULE)
    step.shuffle(window=0, position=0)
    step.bank.weights[0].data.mul_(30)  # so that the clipping has something to do
    peer = copy.deepcopy(trained)
    groups = [
        {"params": list(peer.weights), "weight_decay": 0.1},
        {"params": list(peer.biases), "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups)
    for number in range(5):
        step()
        batch = step.order[number]
        loss = ScoringRule(0.3)(peer(ROWS.x[batch]), ROWS.y[batch][None])
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(peer.parameters(), 5.0)
        assert number > 0 or norm > 5
        for group in optimiser.param_groups:
            group["lr"] = rates[number].item()
        optimiser.step()
    for own, expected in zip(trained.parameters(), peer.parameters(), strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-6)


def test_the_formula_that_is_compiled_is_the_fused_one() -> None:
    steps = []
    for way in (Step._adam, Step._fused_adam):
        step = Step(bank(), ScoringRule([0.5, 0.5]), [0.0, 0.0], ROWS, SCHEDULE)
        generator = torch.Generator().manual_seed(1)
        for _ in range(4):
            step.taken.add_(1)
            gradients = [torch.randn(p.shape, generator=generator) for p in step.parameters]
            with torch.no_grad():
                way(step, gradients, torch.tensor([0.01]))
        steps.append(step)
    for a, b in zip(steps[0].parameters, steps[1].parameters, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_divergence_is_an_error_that_says_so() -> None:
    bad = Rows(ROWS.x, torch.full_like(ROWS.y, math.nan))
    with pytest.raises(TrainingError, match="never finite; lower learning_rate"):
        train(bank(), ScoringRule([0.5, 0.5]), [0.0, 0.0], bad, Rows(HELD.x, bad.y[:60]), SCHEDULE)


class InterruptAt(Silent):
    """Presses Ctrl-C after some evaluations."""

    def __init__(self, step: int) -> None:
        self.step = step

    def update(self, done: int, note: str) -> None:
        if done == self.step:
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_stops_cleanly_and_a_checkpoint_takes_up_from_there(tmp_path: Path) -> None:
    whole, _ = run()
    path = tmp_path / "run.ckpt"
    stopped, record = run(checkpoint=path, progress=InterruptAt(20))
    assert record.interrupted
    assert record.steps < SCHEDULE.steps
    assert stopped.kept
    resumed, record = run(checkpoint=path)
    assert record.resumed_at == 20
    assert not record.interrupted
    assert torch.equal(whole.kept["weights.1"], resumed.kept["weights.1"])
    assert list(tmp_path.iterdir()) == [path]


def test_training_in_a_thread_does_not_touch_signals() -> None:
    results: list[TrainingRecord] = []
    thread = threading.Thread(target=lambda: results.append(run()[1]))
    thread.start()
    thread.join()
    assert results[0].steps == SCHEDULE.steps


def test_a_checkpoint_of_another_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    run(checkpoint=path)
    content = path.read_bytes()
    for schedule, rows in (
        (replace(SCHEDULE, learning_rate=1e-3), ROWS),
        (SCHEDULE, Rows(ROWS.x + 1, ROWS.y)),
    ):
        with pytest.raises(CheckpointError, match="other data, settings or networks"):
            run(schedule, rows, checkpoint=path)
    assert path.read_bytes() == content


def test_a_finished_checkpoint_is_the_finished_run(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    first, _ = run(checkpoint=path)
    again, record = run(checkpoint=path)
    assert record.resumed_at == SCHEDULE.steps
    assert_same(first, again)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_says_how_much_is_left_with_a_bar_at_a_terminal() -> None:
    assert isinstance(progress_for(True, io.StringIO()), Lines)
    assert isinstance(progress_for(False, Terminal()), Silent)
    assert isinstance(progress_for(True, Terminal()), Bar)
    stream = Terminal()
    lines = Lines(stream)
    lines.interval = 0.0
    run(progress=lines)
    shown = stream.getvalue().splitlines()
    assert len(shown) == 6
    assert shown[0].startswith("training:  17 %, ")
    assert "s left, validation NLL" in shown[0]


def test_a_bar_shows_time_left() -> None:
    stream = Terminal()
    run(progress=Bar(stream))
    assert "left" in stream.getvalue()


def test_default_schedule_follows_the_recipe() -> None:
    small = Schedule.of(rows=400, validation_rows=100, learning_rate=5e-3, seed=0)
    assert small.batch_size == 32
    assert 2_500 <= small.steps <= 4_000
    large = Schedule.of(rows=2_000_000, validation_rows=200_000, learning_rate=5e-3, seed=0)
    assert large.batch_size == 1_024
    assert 3_900 <= large.steps <= 2 * 4_000
    # validation costs at most a sixth: rows * a third of the work of a training row
    assert large.evaluate_every * 1_024 / 6 * 1.01 >= 200_000 / 3
    one = Schedule.of(100, 20, 5e-3, 0, epochs=1, batch_size=500)
    assert (one.steps, one.evaluate_every) == (1, 1)
