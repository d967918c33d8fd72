"""A training that several workers do together: all that each of them needs to know.

Each of W workers opens the files itself, reads its share of the rows (`data.shares`) within the
budget of memory, which is each one's own, and takes B / W of the B rows of every batch. Networks,
validation rows, number of steps and learning rates are those of a training in one process; with one
worker so are the rows, their order and the masks, and the result is the same to the bit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field, replace

import torch

from rdeepsense._progress import Progress
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.stream import ParquetSplit, Shares
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.stream_trainer import Reader, opened, place_for
from rdeepsense.fitting.target import Target
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule, StreamedRows, TrainingRecord, train_networks
from rdeepsense.training.checkpoint import fingerprint
from rdeepsense.training.workers import Peers

CPU = torch.device("cpu")


@dataclass
class JointRecord(TrainingRecord):
    """The course of a training that workers did together, and the part of each.

    `workers` has the steps of each, the rows of its share, and, since it was last started, the
    bytes of gradients that it gave to be averaged and the seconds that it computed.
    `seconds_around` is the time in which workers were started and ended, without reading rows.
    """

    workers: list[dict[str, float]] = field(default_factory=list)
    seconds_around: float = 0.0


@dataclass(frozen=True)
class JointJob:
    """Networks, how they are trained, and where the rows are; it travels to the workers."""

    networks: Sequence[StochasticNetwork]
    rule: ScoringRule
    weight_decay: float
    held: Rows
    schedule: Schedule  # its batches are those of all workers together
    split: ParquetSplit
    shares: Shares
    input_scaler: Scaler
    target_scaler: Scaler | None
    target: Target
    window: int | None  # rows of a window; None where every share stays in memory

    @property
    def workers(self) -> int:
        return len(self.shares.parts)

    def fingerprint(self) -> str:
        """Return a digest of everything that the result depends on."""
        states = [value for network in self.networks for value in network.state_dict().values()]
        settings = (
            f"{self.schedule} {self.rule} {self.weight_decay} {self.networks} {self.shares} "
            f"{self.window} {self.split.columns} {self.split.table.description()} "
            f"{self.input_scaler} {self.target_scaler}"
        )
        return fingerprint(settings, [*states, *self.held.signature()])

    def run(
        self,
        peers: Peers,
        checkpoint: str | os.PathLike[str] | None = None,
        display: Progress | None = None,
        device: torch.device = CPU,
    ) -> tuple[list[StochasticNetwork], JointRecord]:
        """Do the part of one worker; all come to the same networks."""
        begin = time.process_time()
        split = self.shares.split(self.split, peers.rank)
        total = sum(split.found.counts)
        size = total if self.window is None else min(self.window, total)
        in_memory = self.window is None
        rows = opened(
            split,
            Reader(split, self.input_scaler, self.target_scaler, self.target),
            place_for(split, self.target_scaler, size, in_memory, device),
            in_memory,
            device,
        )
        own = replace(
            self.schedule,
            batch_size=self.schedule.batch_size // peers.size,
            seed=peers.seed(self.schedule.seed),
        )
        weight = self.held.weight
        held = Rows(
            self.held.x.to(device),
            self.held.y.to(device),
            None if weight is None else weight.to(device),
        )
        with closing(rows.windows) if isinstance(rows, StreamedRows) else nullcontext():
            done, record = train_networks(
                self.networks,
                self.rule,
                self.weight_decay,
                rows,
                held,
                own,
                checkpoint,
                peers=peers,
                display=display,
            )
        part = {
            "steps": record.steps,
            "batch_size": own.batch_size,
            "rows": total,
            "bytes_reduced": peers.reduced,
            "cpu_seconds": time.process_time() - begin,
        }
        return done, JointRecord(**asdict(record), workers=peers.gathered(part))


def joint_schedule(schedule: Schedule, workers: int, smallest: int) -> Schedule:
    """Round a batch down to equal parts, none larger than the smallest share of the rows."""
    each = min(schedule.batch_size // workers, smallest)
    return replace(schedule, batch_size=each * workers)
