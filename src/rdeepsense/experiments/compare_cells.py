"""The fits of a comparison as pieces of work: here one by one, or wherever an engine says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rdeepsense._progress import Progress
from rdeepsense.engines import Engine, Failure
from rdeepsense.errors import TrainingError
from rdeepsense.experiments.methods import Method
from rdeepsense.experiments.uci.trial import FamilyTrial, run_trial


@dataclass(frozen=True, eq=False)
class CompareCell:
    """A family to fit on the training rows of one split, and to score on its test rows."""

    methods: tuple[Method, ...]  # of one family
    task: str
    X: NDArray[np.float64]
    y: NDArray[np.generic]
    test: NDArray[np.bool_]
    hidden: Sequence[int] | str
    random_state: int  # of the first split
    split: int
    groups: NDArray[np.generic] | None
    epochs: int | None

    def run(self) -> FamilyTrial:
        """Fit and score; takes long."""
        train = ~self.test
        return run_trial(
            self.methods,
            self.task,
            (self.X[train], self.y[train]),
            (self.X[self.test], self.y[self.test]),
            self.hidden,
            self.random_state + self.split,
            None if self.groups is None else self.groups[train],
            self.epochs,
        )


def run_compare_cells(
    cells: Sequence[CompareCell], engine: Engine | None, splits: int, display: Progress
) -> list[FamilyTrial]:
    """Return the trial of each cell, in their order; the first that fails ends all."""
    display.start("comparing", len(cells), 0)
    try:
        if engine is None:
            return _run_here(cells, splits, display)
        return _run_on(engine, cells, splits, display)
    finally:
        display.close()


def _run_here(cells: Sequence[CompareCell], splits: int, display: Progress) -> list[FamilyTrial]:
    """Run one after the other; an error is raised as it is."""
    trials = []
    for number, cell in enumerate(cells):
        # Methods differ in time: how much is left is known once each has been fitted.
        done = 0 if cell.split == 0 and splits > 1 else number
        display.update(
            done, f"split {cell.split + 1} of {splits}, fitting {cell.methods[0].family}"
        )
        trials.append(cell.run())
    display.update(len(cells), "all methods fitted")
    return trials


def _run_on(
    engine: Engine, cells: Sequence[CompareCell], splits: int, display: Progress
) -> list[FamilyTrial]:
    """Run in whatever order."""
    trials: dict[int, FamilyTrial] = {}
    display.update(0, f"{len(cells)} fits begin")
    for number, result in engine.run_each(cells):
        at = f"{cells[number].methods[0].family} on split {cells[number].split + 1} of {splits}"
        if isinstance(result, Failure):
            raise TrainingError(f"{at}: {result.reason}")
        trials[number] = result
        display.update(len(trials), f"fitted {at}")
    return [trials[number] for number in range(len(cells))]
