"""Chunks of a bank at the same time: the bits, stops and errors of one after the other."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from stopping import Steps

from rdeepsense._progress import Silent
from rdeepsense._torch import StopOnInterrupt
from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.errors import TrainingError
from rdeepsense.networks import dense
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule, TrainingRecord, loop, train_networks
from rdeepsense.training import loop as chunks
from rdeepsense.training.loop import side_by_side


def table() -> tuple[torch.Tensor, ...]:
    """Return inputs, targets and the weights of the first 80 rows for seven networks."""
    own = torch.Generator().manual_seed(0)
    X = torch.randn(120, 3, generator=own)
    Y = X[:, :1].sin() + 0.3 * torch.randn(120, 1, generator=own)
    return X, Y, torch.rand(7, 80, generator=own)


X, Y, WEIGHT = table()
ROWS, HELD = Rows(X[:80], Y[:80], WEIGHT), Rows(X[80:], Y[80:])
SCHEDULE = Schedule(
    steps=60, batch_size=16, learning_rate=0.02, evaluate_every=7, patience=50, seed=3
)
ALPHAS = [0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 0.9]
Trained = tuple[list[StochasticNetwork], TrainingRecord]


def networks(count: int = 7) -> list[StochasticNetwork]:
    found = []
    for member in range(count):
        torch.manual_seed(member)
        found.append(convert(dense(3, (6,), 1), drop_prob=0.1))
    return found


def run(threads: int = 2, path: Path | None = None, **changes: int) -> Trained:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        schedule = replace(SCHEDULE, **changes)
        return train_networks(networks(), ScoringRule(ALPHAS), 0.0, ROWS, HELD, schedule, path)
    finally:
        torch.set_num_threads(before)


def told(found: Trained) -> tuple[dict[str, Any], list[dict[str, bytes]]]:
    members, record = found
    said = asdict(record)
    del said["seconds"], said["resumed_at"]
    bits = [{n: t.numpy().tobytes() for n, t in m.state_dict().items()} for m in members]
    return said, bits


@pytest.fixture(autouse=True)
def _divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "DIVIDE_FROM", 1)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the banks that are trained, in any order."""
    found: list[int] = []
    train = chunks.train

    def noted(bank: Any, *arguments: Any, **more: Any) -> Any:
        found.append(bank.size)
        return train(bank, *arguments, **more)

    monkeypatch.setattr(chunks, "train", noted)
    return found


@pytest.mark.parametrize("activations", [1_000_000, 16 * 6 * 2], ids=["halves", "pairs"])
def test_the_number_of_cores_changes_no_bit(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], activations: int
) -> None:
    monkeypatch.setattr(chunks, "ACTIVATIONS", {"cpu": activations})
    alone = told(run(threads=1))
    divided = sorted(sizes)
    assert divided == ([3, 4] if activations == 1_000_000 else [1, 2, 2, 2])
    for threads in (2, 5):
        sizes.clear()
        assert told(run(threads)) == alone
        assert sorted(sizes) == divided
    said = alone[0]
    assert said["evaluated_at"] == [*range(7, 60, 7), 60]
    assert [len(nll) for nll in said["history"]] == [7] * 9
    assert said["best_nll"] == [min(nll) for nll in zip(*said["history"], strict=True)]


def test_light_banks_and_whole_groups_stay_together(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    run(together=7)
    assert sizes == [7]
    sizes.clear()
    # 7 members, batches of 16 rows, layers of 6 units.
    monkeypatch.setattr(chunks, "DIVIDE_FROM", 7 * 16 * 6**2 + 1)
    run()
    assert sizes == [7]
    sizes.clear()
    monkeypatch.setattr(chunks, "DIVIDE_FROM", 7 * 16 * 6**2)
    run()
    assert sorted(sizes) == [3, 4]


def test_what_draws_from_torchs_generator_is_trained_in_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Own(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.dropout(x, 0.1, self.training)

    found: list[threading.Thread] = []
    train = chunks.train

    def noted(*arguments: Any, **more: Any) -> Any:
        found.append(threading.current_thread())
        return train(*arguments, **more)

    monkeypatch.setattr(chunks, "train", noted)
    monkeypatch.setattr(chunks, "threads_outside", lambda: 2)
    monkeypatch.setattr(chunks, "ACTIVATIONS", {"cpu": 1})
    rows = Rows(X[:80], Y[:80])
    for layer, is_main in ((Own(), True), (torch.nn.Softplus(), False)):
        body = torch.nn.Sequential(torch.nn.Linear(3, 6), layer, torch.nn.Linear(6, 1))
        both = [convert(body, example=X[:2]) for _ in range(2)]
        train_networks(both, ScoringRule([0.5, 0.0]), 0.0, rows, HELD, SCHEDULE)
        assert [thread is threading.main_thread() for thread in found] == [is_main] * 2
        found.clear()


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_and_on_from_both_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    whole = told(run())
    for press_at in (1, 30, 61, 100):
        path = tmp_path / f"{press_at}.ckpt"
        with monkeypatch.context() as patch:
            patch.setattr(loop, "accelerate", Steps(press_at).accelerate)
            members, record = run(threads, path)
        assert record.interrupted
        assert len(members) == len(record.best_nll) == len(record.best_step)
        if threads == 1:
            assert (len(members), record.steps) == ((4, press_at) if press_at < 60 else (7, 60))
        resumed = run(3 - threads, path)
        assert resumed[1].resumed_at is not None
        assert told(resumed) == whole


def test_a_second_ctrl_c_interrupts_and_the_state_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both presses come in one step, as the handler of the first only sets a flag."""
    handled = Steps()

    def accelerate(step: Callable[[], None], *_: object) -> Callable[[], None]:
        def take() -> None:
            step()
            handled.taken += 1
            if handled.taken == 20:
                main = signal.getsignal(signal.SIGINT)
                assert callable(main)
                main(signal.SIGINT, None)  # the first press, wherever this runs
                os.kill(os.getpid(), signal.SIGINT)

        return take

    whole, path = told(run()), tmp_path / "run.ckpt"
    with monkeypatch.context() as patch:
        patch.setattr(loop, "accelerate", accelerate)
        with pytest.raises(KeyboardInterrupt):
            run(2, path)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = run(2, path)
    assert resumed[1].resumed_at is not None
    assert told(resumed) == whole


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bad", [0, 6])
def test_a_chunk_that_diverges_stops_the_others(
    monkeypatch: pytest.MonkeyPatch, threads: int, bad: int
) -> None:
    found = networks()
    with torch.no_grad():
        next(found[bad].body.parameters()).fill_(torch.nan)
    monkeypatch.setitem(globals(), "networks", lambda: found)
    steps = Steps()
    monkeypatch.setattr(loop, "accelerate", steps.accelerate)
    with pytest.raises(TrainingError, match="training diverged"):
        run(threads, stop_at=21)
    if threads == 1:  # the second chunk is not begun once the first has failed
        assert steps.taken == (21 if bad == 0 else 42)


def test_a_failure_stops_what_runs_beside_it() -> None:
    """The other run would never end by itself."""
    stop = StopOnInterrupt()

    def fails() -> None:
        raise TrainingError("this one")

    def goes_on() -> None:
        while not stop.requested:
            pass

    with pytest.raises(TrainingError, match="this one"):
        side_by_side([goes_on, fails, goes_on], 2, stop)


def test_one_display_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noted(Silent):
        def __init__(self) -> None:
            self.said: list[Any] = []

        def start(self, title: str, total: int, done: int) -> None:
            self.said.append((title, total, done))

        def update(self, done: int, note: str) -> None:
            self.said.append(done)

        def close(self) -> None:
            self.said.append("closed")

    for threads in (1, 2):
        noted = Noted()
        monkeypatch.setattr(chunks, "progress_for", lambda _, noted=noted: noted)
        run(threads)
        start, *updates, end = noted.said
        assert (start, end) == (("training", 120, 0), "closed")
        assert updates == sorted(updates)
        assert (len(updates), updates[-1]) == (18, 120)
