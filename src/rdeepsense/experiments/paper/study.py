"""What one run of the evaluation is about: preset, data and seed; its tasks and their parts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.errors import InputError
from rdeepsense.experiments.paper.presets import Preset
from rdeepsense.experiments.tasks.task import Split, Task
from rdeepsense.metrics import deviation_floor

FEW_GROUPS = 40
SHARES_OF_FEW = (0.7, 0.1, 0.2)  # of nine users, say, so that more than one is tested


@dataclass(frozen=True)
class Study:
    """Everything that the cells of a run have in common."""

    preset: Preset
    data: Path | None  # None simulates
    seed: int

    def __hash__(self) -> int:  # a preset holds a dictionary
        return hash((self.preset.name, self.data, self.seed))

    def data_key(self, task: str) -> dict[str, Any]:
        """What the rows of a task follow from.

        Real files are known by name, size and time of change: to read gigabytes only to see that
        nothing is to be done would take minutes.
        """
        if self.data is None:
            return {"simulated": self.preset.rows[task], "seed": self.seed}
        if not self.data.is_dir():
            raise InputError(f"--data {self.data}: there is no such folder")
        digest = hashlib.sha256()
        for path in sorted(p for p in self.data.rglob("*") if p.is_file()):
            state = path.stat()
            name = path.relative_to(self.data).as_posix()
            digest.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
        return {"files": digest.hexdigest()[:16], "most_rows": self.preset.most_rows}

    def load(self, task: str) -> Parts:
        """The rows of a task and how they are split; the last one asked for is kept."""
        return _load(self, task)


@dataclass(frozen=True)
class Parts:
    """A task and its three parts."""

    task: Task
    split: Split
    by: str  # "rows" or "groups"

    def train(self, most: int | None = None, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
        """Training rows, `most` of them at random."""
        chosen = self.split.train
        if most is not None and len(chosen) > most:
            chosen = np.sort(np.random.default_rng(seed).choice(chosen, most, replace=False))
        return self.task.X[chosen], self.task.y[chosen]

    @property
    def validation(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows for every choice that is made."""
        return self.task.X[self.split.validation], self.task.y[self.split.validation]

    @property
    def test(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows that judge."""
        return self.task.X[self.split.test], self.task.y[self.split.test]

    @property
    def test_groups(self) -> NDArray[Any] | None:
        """The group of each test row, where there are groups."""
        return None if self.task.groups is None else self.task.groups[self.split.test]

    @property
    def clusters(self) -> NDArray[Any] | None:
        """What test rows depend on each other by: the groups, where whole groups are tested."""
        return self.test_groups if self.by == "groups" else None

    @property
    def outputs(self) -> int:
        """Columns of the target; for classes, their number."""
        return len(self.task.classes) or len(self.task.targets)

    def describe(self) -> dict[str, Any]:
        """What a report says of the task."""
        from rdeepsense.experiments.tasks import catalogue

        task, split = self.task, self.split
        y = None if task.classes else task.y
        return {
            "title": catalogue.find(task.name).title,
            "kind": task.kind,
            "simulated": task.simulated,
            "source": task.source,
            "unit": task.unit,
            "classes": list(task.classes),
            "split": split.how,
            "grouped_by": task.grouped_by,
            "rows": {
                "train": len(split.train),
                "validation": len(split.validation),
                "test": len(split.test),
            },
            "inputs": len(task.features),
            "outputs": self.outputs,
            "target": None
            if y is None
            else {
                "mean": float(y.mean()),
                "std": float(y.std()),
                "min": float(y.min()),
                "max": float(y.max()),
            },
            "floor": None if y is None else deviation_floor(int(y[split.test].size)),
        }


@lru_cache(maxsize=1)
def _load(study: Study, name: str) -> Parts:
    from rdeepsense.experiments.tasks import catalogue

    task = catalogue.load(name, study.data, study.preset.rows[name], study.seed)
    if study.preset.most_rows is not None and not task.simulated:
        task = _thinned(task, study.preset.most_rows, study.seed)
    # The truth of simulated groups is that of groups never seen; on random rows it would leak.
    by = "groups" if task.simulated and task.groups is not None else task.split_by
    shares = study.preset.shares
    if by == "groups" and task.groups is not None and len(np.unique(task.groups)) < FEW_GROUPS:
        shares = SHARES_OF_FEW
    return Parts(task, task.split(by, shares, study.seed), by)


def _thinned(task: Task, most: int, seed: int) -> Task:
    """So many rows at random, in their order."""
    if len(task.X) <= most:
        return task
    kept = np.sort(np.random.default_rng(seed).choice(len(task.X), most, replace=False))
    return replace(
        task,
        X=task.X[kept],
        y=task.y[kept],
        groups=None if task.groups is None else task.groups[kept],
        source=f"{task.source}; {most:,} of {len(task.X):,} rows at random",
    )
