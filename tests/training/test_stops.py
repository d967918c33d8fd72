"""Ctrl-C after any step: the resumed run is the one that was never stopped, to the bit."""

from __future__ import annotations

import os
import signal
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from stopping import Steps

from rdeepsense.dropout import convert
from rdeepsense.networks import dense
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Bank, Rows, Schedule, TrainingRecord, loop, stack, train, workers


def table() -> tuple[torch.Tensor, torch.Tensor]:
    own = torch.Generator().manual_seed(0)
    X = torch.randn(200, 3, generator=own)
    return X, X[:, :1].sin() + 0.3 * torch.randn(200, 1, generator=own)


X, Y = table()
ROWS, HELD = Rows(X[:100], Y[:100]), Rows(X[100:], Y[100:])
# Overfits: the best step comes early, and an evaluation more or less moves the end of the run.
SCHEDULE = Schedule(
    steps=90, batch_size=16, learning_rate=0.05, evaluate_every=7, patience=5, seed=3
)


def run(path: Path | None = None, decays: tuple[float, ...] = (0.0, 0.0), **changes: int):
    banks = []
    for member in range(2):
        torch.manual_seed(member)
        banks.append(convert(dense(3, (16,), 1), drop_prob=0.1))
    bank, rule = stack(banks), ScoringRule([0.5, 0.0])
    schedule = replace(SCHEDULE, **changes)
    return bank, train(bank, rule, decays, ROWS, HELD, schedule, checkpoint=path)


def told(found: tuple[Bank, TrainingRecord]) -> tuple[dict[str, object], dict[str, bytes]]:
    bank, record = found
    said = asdict(record)
    del said["seconds"], said["resumed_at"]
    tensors = {**bank.state_dict(), **{f"kept.{k}": v for k, v in bank.kept.items()}}
    return said, {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


@pytest.mark.parametrize("decays", [(0.0, 0.0), (1e-2, 0.0)], ids=["written out", "autograd"])
def test_after_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decays: tuple[float, float]
) -> None:
    whole = run(decays=decays)
    last = whole[1].steps
    assert last < SCHEDULE.steps, "the run must end by itself, or patience is not tested"
    # Not a divisor of the evaluations' distance, so that all places between two of them come.
    stride = 1 if os.environ.get("RDEEPSENSE_LONG") else 11
    for step in range(1, last + 1, stride):
        path = tmp_path / f"{step}.ckpt"
        with monkeypatch.context() as patch:
            patch.setattr(loop, "accelerate", Steps(step).accelerate)
            bank, stopped = run(path, decays)
        assert (stopped.interrupted, stopped.steps) == (True, step)
        assert stopped.evaluated_at[-1] == step, "what the caller gets is evaluated where it ends"
        assert stopped.evaluated_at[:-1] == list(range(7, step, 7))
        assert bank.kept
        resumed = run(path, decays)
        assert resumed[1].resumed_at == step
        assert told(resumed) == told(whole)


def test_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run()
    path, stops = tmp_path / "run.ckpt", 0
    while True:
        with monkeypatch.context() as patch:
            patch.setattr(loop, "accelerate", Steps(9).accelerate)
            resumed = run(path)
        if not resumed[1].interrupted:
            break
        stops += 1
    assert stops == whole[1].steps // 9
    assert told(resumed) == told(whole)


def test_what_a_checkpoint_holds_does_not_depend_on_why_it_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state after step 10 by Ctrl-C is that of a run that saves after every step."""
    stopped, ended = tmp_path / "stopped", tmp_path / "ended"
    with monkeypatch.context() as patch:
        patch.setattr(loop, "accelerate", Steps(10).accelerate)
        run(stopped)

    class DiedError(Exception):
        pass

    class DiesAfterTen(loop.Checkpoint):
        def due(self) -> bool:
            return True

        def save(self, header, tensors) -> None:  # type: ignore[no-untyped-def]
            super().save(header, tensors)
            if header["steps"] == 10:
                raise DiedError

    monkeypatch.setattr(workers, "Checkpoint", DiesAfterTen)
    with pytest.raises(DiedError):
        run(ended)
    assert stopped.read_bytes() == ended.read_bytes()


def test_a_process_that_ignores_ctrl_c_is_not_stopped_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        monkeypatch.setattr(loop, "accelerate", Steps(10).accelerate)
        assert not run()[1].interrupted
    finally:
        signal.signal(signal.SIGINT, before)
