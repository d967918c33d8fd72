"""Many networks: banks of as many as fit well in the caches, one bank after the other."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace

from rdeepsense.dropout import StochasticNetwork
from rdeepsense.progress import progress_for
from rdeepsense.scoring import ScoringRule
from rdeepsense.training.bank import stack
from rdeepsense.training.loop import train
from rdeepsense.training.schedule import Rows, Schedule, TrainingRecord

# Of one layer, over all members and rows of a batch: what fits in the caches of a CPU, and what
# keeps a GPU busy.
ACTIVATIONS = {"cpu": 1_000_000, "cuda": 50_000_000}


def train_networks(
    networks: Sequence[StochasticNetwork],
    rule: ScoringRule,
    weight_decay: float,
    rows: Rows,
    validation: Rows,
    schedule: Schedule,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    title: str = "training",
) -> tuple[list[StochasticNetwork], TrainingRecord]:
    """Train all networks side by side; they come back with their best steps, and the record.

    `rule` has one alpha for each of them.
    """
    numbers = stack(networks[:1]).numbers
    most = ACTIVATIONS["cuda" if rows.x.is_cuda else "cpu"]
    size = max(1, most // (min(schedule.batch_size, len(rows)) * numbers))
    size = math.ceil(len(networks) / math.ceil(len(networks) / size))  # banks of about equal size
    size = math.ceil(size / schedule.together) * schedule.together
    done: list[StochasticNetwork] = []
    records: list[TrainingRecord] = []
    for start in range(0, len(networks), size):
        part = slice(start, start + size)
        bank = stack(networks[part])
        several = len(networks) > size
        record = train(
            bank,
            rule.members(part),
            [weight_decay] * bank.size,
            _of_members(rows, part),
            _of_members(validation, part),
            schedule,
            checkpoint if checkpoint is None or not several else f"{os.fspath(checkpoint)}-{start}",
            progress_for(verbose),
            f"{title}, {start + 1} to {start + bank.size} of {len(networks)}" if several else title,
        )
        done += bank.networks()
        records.append(record)
        if record.interrupted:
            break
    return done, _joined(records)


def _of_members(rows: Rows, part: slice) -> Rows:
    if rows.weight is None or rows.weight.ndim == 1:
        return rows
    return replace(rows, weight=rows.weight[part])


def _joined(records: Sequence[TrainingRecord]) -> TrainingRecord:
    """Join the records of all members; the curves are the first bank's where their steps differ."""
    if len(records) == 1:
        return records[0]
    return TrainingRecord(
        best_nll=[x for r in records for x in r.best_nll],
        best_step=[x for r in records for x in r.best_step],
        steps=max(r.steps for r in records),
        seconds=sum(r.seconds for r in records),
        interrupted=any(r.interrupted for r in records),
        resumed_at=None,
    )
