"""Processes that train together over gloo, without Ray; and what they are given to do."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, multiprocessing, nn

from rdeepsense._progress import Silent
from rdeepsense.dropout import convert
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Bank, Rows, Schedule, TrainingRecord, stack, train
from rdeepsense.training.workers import WorkerGroup


def table() -> tuple[Tensor, Tensor]:
    own = torch.Generator().manual_seed(0)
    X = torch.randn(240, 3, generator=own)
    return X, X[:, :1].sin() + 0.3 * torch.randn(240, 1, generator=own)


X, Y = table()
TRAIN, HELD = Rows(X[:160], Y[:160]), Rows(X[160:235], Y[160:235])
# A batch is a whole share, so that two workers see in a step what one sees.
SCHEDULE = Schedule(
    steps=20, batch_size=160, learning_rate=0.02, evaluate_every=5, patience=9, seed=3
)
KINDS = ("written out", "autograd", "attacked", "normalised")


def bank(kind: str, drop_prob: float = 0.0) -> Bank:
    """Two members; by default nothing is dropped, because masks differ from worker to worker."""
    middle = {"autograd": [nn.Tanh()], "normalised": [nn.BatchNorm1d(8), nn.ReLU()]}
    torch.manual_seed(1)
    members = [
        nn.Sequential(nn.Linear(3, 8), *middle.get(kind, [nn.ReLU()]), nn.Linear(8, 1))
        for _ in range(2)
    ]
    return stack([convert(member, drop_prob=drop_prob) for member in members])


def trained(
    kind: str, peers: WorkerGroup, drop_prob: float = 0.0
) -> tuple[dict[str, Tensor], TrainingRecord]:
    """The weights after twenty steps and the record, of one of the peers."""
    own = bank(kind, drop_prob)
    schedule = replace(
        SCHEDULE,
        batch_size=SCHEDULE.batch_size // peers.size,
        seed=peers.seed(SCHEDULE.seed),
        adversarial=0.1 if kind == "attacked" else 0.0,
    )
    rows = peers.part_of(TRAIN)
    record = train(own, ScoringRule([0.3, 0.7]), [0.1] * 2, rows, HELD, schedule, peers=peers)
    return {name: value.clone() for name, value in own.state_dict().items()}, record


def averaged(peers: WorkerGroup) -> Any:
    """Average a tensor that holds the worker's number."""
    flat = torch.tensor([float(peers.rank), 6.0])
    peers.average(flat)
    return flat.tolist()


def every_kind(peers: WorkerGroup) -> Any:
    """Train banks of all kinds one after the other, and one that drops."""
    return {
        **{kind: (*trained(kind, peers), peers.reduced) for kind in KINDS},
        "dropping": (*trained("written out", peers, 0.3), peers.reduced),
        "averaged": averaged(peers),
        "agreed": peers.agreed(peers.rank + 5, torch.device("cpu")),
    }


def joint(peers: WorkerGroup, pickled: bytes) -> Any:
    """Do a worker's part of a job that came as bytes."""
    networks, record = pickle.loads(pickled).run(peers)
    return [network.state_dict() for network in networks], record


class KillsItself(Silent):
    """A display whose process is killed at an evaluation, once: the file says that it was.

    Before that it waits until Ray has taken note of a checkpoint in the storage, which Ray does
    in its own time.
    """

    def __init__(self, at: int, file: Path, storage: Path) -> None:
        self._at, self._file, self._storage = at, file, storage

    def update(self, done: int, note: str) -> None:
        if done >= self._at and not self._file.exists():
            give_up = time.monotonic() + 60
            while not self._noted() and time.monotonic() < give_up:
                time.sleep(0.05)
            self._file.write_text(f"{done}")
            os.kill(os.getpid(), signal.SIGKILL)

    def _noted(self) -> bool:
        found = self._storage.glob("*/checkpoint_manager_snapshot.json")
        return any('"checkpoint_dir_name"' in file.read_text() for file in found)


def together(work: Callable[..., Any], size: int, folder: Path, *arguments: Any) -> list[Any]:
    """Return what `work(peers, *arguments)` gives in each of so many processes.

    `work` is a function of this module or of the library.
    """
    multiprocessing.spawn(_begin, (size, folder, work, arguments), size)
    return [pickle.loads((folder / f"result-{rank}").read_bytes()) for rank in range(size)]


def _begin(
    rank: int, size: int, folder: Path, work: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder / 'meeting'}"
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size)
    result = work(WorkerGroup(rank, size), *arguments)
    (folder / f"result-{rank}").write_bytes(pickle.dumps(result))
    distributed.destroy_process_group()
