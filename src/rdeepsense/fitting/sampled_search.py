"""Choosing on a sample where rows are many: the winner alone is trained on all of them.

Which network, head, alpha, dropout and length are best is told by 50,000 rows as well as by
millions, in a fraction of the time. The sample's rows train or validate as they do in the whole.
Then the winner is fitted as if it had been given: on all training rows, with its best step and
calibration found on all validation rows. It is trained for the usual length for so many rows, and
for no fewer steps and no fewer rows than it took on the sample:

    steps >= max(usual steps, n, n b / B)

with n steps in batches of b rows on the sample, and batches of the usual B rows on all.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace

from rdeepsense.data.rows import FitRows, sampled
from rdeepsense.fitting.select import select
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.fitting.stream_trainer import ParquetRows
from rdeepsense.fitting.target import Target
from rdeepsense.fitting.trainer import TrainedModel, Trainer
from rdeepsense.training import Schedule

SAMPLE = 50_000  # rows, those to judge by included
FEWEST = 2_000  # that a budget of memory must leave of a larger table in files, to choose on them


class SampleTrainer(Trainer):
    """A trainer on a sample in memory, which has validation rows enough."""

    can_fold = False

    def __init__(self, spec: FitSpec, rows: FitRows, target: Target) -> None:
        super().__init__(spec, rows, target)
        self.about = f"choosing on {_count(rows):,} rows: "


def choose(trainer: Trainer) -> TrainedModel:
    """Return the best candidate's networks, trained on all rows; the trainer is left with it."""
    spec, rows = trainer.spec, trainer.rows
    if not (len(spec.grid) > 1 or spec.open_architecture) or not _on_sample(trainer):
        return select(trainer)
    streamed = isinstance(rows, ParquetRows)
    trained = trainer.row_count if streamed else len(rows.train)
    own = SampleTrainer(spec, sampled(rows, SAMPLE, trained), trainer.target)
    found = select(own)
    few, total = _count(own.rows), trained + len(rows.validation)
    selection = found.selection
    if selection is not None and few < total:
        how = f"{selection.how} of a sample of {few:,} of {total:,} rows"
        selection = replace(selection, how=how)
    if own.interrupted:  # whoever stops a search wants no long training after it
        trainer.spec, trainer.input_scaler = own.spec, own.input_scaler
        return replace(found, selection=selection)
    trainer.about = f"training the choice on all {total:,} rows: "
    trainer.spec = replace(
        spec,
        architecture=own.spec.architecture,
        open_architecture=False,
        grid=(found.candidate,),
        epochs=spec.epochs or epochs_on(trained, found, spec.batch_size),
        checkpoint=None if spec.checkpoint is None else f"{os.fspath(spec.checkpoint)}.all",
    )
    return replace(select(trainer), selection=selection)


def epochs_on(rows: int, found: TrainedModel, batch_size: int | None) -> int:
    """Return the epochs of a table of so many rows, for what was trained well on a sample of it."""
    usual = Schedule.of(rows, 0, 1.0, 0, batch_size=batch_size)
    details = found.training.details
    larger = max(1.0, int(details["batch_size"]) / usual.batch_size)
    steps = max(usual.steps, int(details["planned_steps"]) * larger)
    return math.ceil(steps / max(1, rows // usual.batch_size))


def _on_sample(trainer: Trainer) -> bool:
    """Tell whether rows are many, or in files and as many in memory as a choice needs."""
    rows = trainer.rows
    if not isinstance(rows, ParquetRows):
        return trainer.row_count > SAMPLE
    return len(rows.train) >= min(FEWEST, trainer.row_count)


def _count(rows: FitRows) -> int:
    return len(rows.train) + len(rows.validation)
