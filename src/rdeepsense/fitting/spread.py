"""Banks that do not depend on each other, each trained where an engine puts it.

A piece of work is a trainer on rows in memory and what to do with it. It comes to the same bits
wherever it runs: seeds are in the specification, and the number of threads does not enter.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from rdeepsense.engines import Engine, Failure, Ray
from rdeepsense.errors import RDeepSenseError
from rdeepsense.fitting.spec import FitSpec
from rdeepsense.fitting.trainer import Trainer

Result = TypeVar("Result")


@dataclass(frozen=True)
class Piece(Generic[Result]):
    """A part of a search, for any process."""

    trainer: Trainer
    spec: FitSpec
    task: Callable[[Trainer, FitSpec], Result]

    def run(self) -> Result:
        return self.task(self.trainer, self.spec)


def engine_for(trainer: Trainer, pieces: int) -> Engine | None:
    """Return what so many pieces of the trainer's work are given to; None is this process.

    One piece alone stays here, and so do files, which the engine's workers read together, and what
    is to run on a GPU where the engine's workers have none.
    """
    engine = trainer.spec.engine
    if engine is None or pieces < 2 or not trainer.can_travel:
        return None
    has_gpu = isinstance(engine, Ray) and engine.use_gpu
    return engine if trainer.spec.device.type == "cpu" or has_gpu else None


def spread(
    engine: Engine, trainer: Trainer, tasks: Sequence[Callable[[Trainer, FitSpec], Result]]
) -> list[Result]:
    """Return the results in the order of the tasks; the first that fails ends all.

    Elsewhere nothing is shown, and no state is saved: a search that was broken off begins again.
    """
    own = copy.copy(trainer)
    spec = replace(trainer.spec, engine=None, checkpoint=None, verbose=False, max_seconds=None)
    own.spec = spec
    found: dict[int, Result] = {}
    for number, result in engine.run_each([Piece(own, spec, task) for task in tasks]):
        if isinstance(result, Failure):
            raise RDeepSenseError(result.reason)
        found[number] = result
    return [found[number] for number in range(len(tasks))]
