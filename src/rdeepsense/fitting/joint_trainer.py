"""Training on Parquet files by workers of a Ray cluster, each on its share of the rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch

from rdeepsense._progress import progress_for
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.data.stream import Shares, to_send
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.engines import Ray
from rdeepsense.errors import InputError
from rdeepsense.fitting.joint_job import JointJob, joint_schedule
from rdeepsense.fitting.ray_training import Trained, train_with_ray, worker_count
from rdeepsense.fitting.stream_trainer import StreamTrainer
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule


@dataclass(frozen=True)
class RowsElsewhere(Rows):
    """No rows: how many the workers have together, and the scale of their targets."""

    count: int = 0
    scaler: Scaler | None = None

    @property
    def total(self) -> int:
        return self.count


class JointTrainer(StreamTrainer):
    """A trainer whose trainings are runs of Ray Train."""

    def training_rows(self, part: Part, scaler: Scaler | None) -> Rows:
        nothing = torch.empty(0)
        return RowsElsewhere(nothing, nothing, count=self.row_count, scaler=scaler)

    def _train(
        self,
        networks: Sequence[StochasticNetwork],
        rule: ScoringRule,
        rows: Rows,
        held: Rows,
        schedule: Schedule,
        checkpoint: str | os.PathLike[str] | None,
        title: str,
    ) -> Trained:
        assert isinstance(rows, RowsElsewhere)
        engine = cast("Ray", self.spec.engine)
        with engine.connected() as ray:
            job = self._job(networks, rule, rows, held, schedule, worker_count(engine, ray))
            display = progress_for(self.spec.verbose)
            return train_with_ray(job, engine, ray, checkpoint, display, title)

    def _job(
        self,
        networks: Sequence[StochasticNetwork],
        rule: ScoringRule,
        rows: RowsElsewhere,
        held: Rows,
        schedule: Schedule,
        workers: int,
    ) -> JointJob:
        """Describe a training for so many workers."""
        if workers > min(schedule.batch_size, self.row_count):
            raise InputError(
                f"workers = {workers}: is more than the {schedule.batch_size} rows of a batch, of "
                "which each takes a part; give fewer, or a larger batch_size"
            )
        counts = self._split.found.counts
        shares = Shares.of(counts, workers)
        sizes = shares.rows(counts)
        batch = max(1, min(self._batch(self.row_count) // workers, min(sizes)))
        window = self._window_rows(max(sizes), batch, rows.scaler)
        return JointJob(
            networks,
            rule,
            self.spec.weight_decay,
            Rows(held.x.cpu(), held.y.cpu(), None if held.weight is None else held.weight.cpu()),
            joint_schedule(schedule, workers, min(sizes)),
            to_send(self._split),
            shares,
            self.input_scaler,
            rows.scaler,
            self.target,
            None if window == max(sizes) else window,
        )
