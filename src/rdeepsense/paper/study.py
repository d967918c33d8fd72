"""A study: preset, data, seed, its tasks and their parts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rdeepsense._records import Record
from rdeepsense.errors import InputError
from rdeepsense.metrics import deviation_floor
from rdeepsense.paper.tasks import catalogue
from rdeepsense.paper.tasks.task import Split, Targets, Task

# --------------------------------------------------------------------------------------------------
# Presets of an evaluation: the paper's sizes, or a quick one
# --------------------------------------------------------------------------------------------------

TASKS = ("BPEst", "NYCommute", "GasSen", "HHAR")
ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)  # of the paper's study (section 4.6)
SAMPLES = (3, 5, 10, 20)  # k of RDeepSense-MCk and MCDrop-k (section 4.3)
MEMBERS = (1, 3, 5, 10)  # k of SSP-k
METHODS = (
    "RDeepSense-paper",
    *(f"RDeepSense-paper-MC{k}" for k in SAMPLES),
    *(f"MCDrop-{k}-paper" for k in SAMPLES),
    "MCDrop-20",
    *(f"SSP-{k}-paper" for k in MEMBERS),
    "GP",
    "RDeepSense",
)  # in the order of the tables


@dataclass(frozen=True)
class Preset:
    """The size of everything."""

    name: str
    hidden: tuple[int, ...]
    seeds: int  # trainings of everything, each from another seed, on the same rows
    rows: dict[str, int]  # of each task where it is simulated
    most_rows: int | None  # of real data, drawn at random; None for all
    steps: int | None  # of each training; None follows the default recipe
    batch_size: int | None
    shares: tuple[float, float, float]  # train, validation, test
    gp_rows: int  # of the training rows, drawn at random
    gp_steps: int | None
    rounds: int  # of the timing
    kl_draws: int  # from the known truth, for each test row


PRESETS = {
    "quick": Preset(
        name="quick",
        hidden=(64, 64, 64),
        seeds=4,
        rows={"BPEst": 5_000, "NYCommute": 8_000, "GasSen": 8_000, "HHAR": 5_000},
        most_rows=20_000,
        steps=1_500,
        batch_size=64,
        shares=(0.7, 0.15, 0.15),
        gp_rows=1_000,
        gp_steps=100,
        rounds=15,
        kl_draws=20,
    ),
    "paper": Preset(
        name="paper",
        hidden=(500, 500, 500),
        seeds=3,
        rows={"BPEst": 60_000, "NYCommute": 400_000, "GasSen": 200_000, "HHAR": 31_686},
        most_rows=None,
        steps=None,
        batch_size=None,
        shares=(0.9, 0.05, 0.05),
        gp_rows=3_000,
        gp_steps=None,
        rounds=51,
        kl_draws=20,
    ),
}


def preset(name: str) -> Preset:
    """Return the preset of that name."""
    if name not in PRESETS:
        raise InputError(f"preset {name!r} is unknown; accepted: {', '.join(PRESETS)}")
    return PRESETS[name]


def tasks_named(names: str) -> tuple[str, ...]:
    """Read `all`, or names of tasks separated by commas, in any case."""
    if names.strip().lower() == "all":
        return TASKS
    known = {task.lower(): task for task in TASKS}
    words = [word.strip() for word in names.split(",")]
    for word in words:
        if word.lower() not in known:
            raise InputError(f"task {word!r} is unknown; accepted: all, {', '.join(TASKS)}")
    return tuple(dict.fromkeys(known[word.lower()] for word in words))


# --------------------------------------------------------------------------------------------------
# A run of the evaluation: preset, data, seed and tasks
# --------------------------------------------------------------------------------------------------

FEW_GROUPS = 40
SHARES_OF_FEW = (0.7, 0.1, 0.2)  # of nine users, say, so that more than one is tested
Rows = tuple[NDArray[np.float32], Targets]
"""Inputs and targets."""


@dataclass(frozen=True)
class PartSizes(Record):
    """Rows of the three parts."""

    train: int
    validation: int
    test: int


@dataclass(frozen=True)
class TargetRange(Record):
    """Moments and range of a numeric target."""

    mean: float
    std: float
    min: float
    max: float


@dataclass(frozen=True)
class TaskFacts(Record):
    """The facts of a task that a report gives."""

    title: str
    kind: str  # "regression" or "classification"
    simulated: bool
    source: str
    unit: str
    classes: Sequence[str]
    split: str  # how the parts were told apart
    grouped_by: str
    rows: PartSizes
    inputs: int
    outputs: int
    target: TargetRange | None  # None for classes
    floor: float | None  # of the deviation area; None for classes


@dataclass(frozen=True)
class Study:
    """The preset, the data and the seed that all cells of a run share."""

    preset: Preset
    data: Path | None  # None simulates
    seed: int

    def __hash__(self) -> int:  # a preset holds a dictionary
        return hash((self.preset.name, self.data, self.seed))

    def data_key(self, task: str) -> dict[str, object]:
        """Return what the rows of a task follow from.

        Real files are known by name, size and time of change: to read gigabytes only to see that
        nothing is to be done would take minutes.
        """
        if self.data is None:
            return {"simulated": self.preset.rows[task], "seed": self.seed}
        if not self.data.is_dir():
            raise InputError(f"data = {self.data}: there is no such folder")
        digest = hashlib.sha256()
        for path in sorted(p for p in self.data.rglob("*") if p.is_file()):
            state = path.stat()
            name = path.relative_to(self.data).as_posix()
            digest.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
        return {"files": digest.hexdigest()[:16], "most_rows": self.preset.most_rows}

    def load(self, task: str) -> Parts:
        """Return the rows of a task and how they are split; the last one asked for is kept."""
        return _load(self, task)


@dataclass(frozen=True)
class Parts:
    """A task and its three parts."""

    task: Task
    split: Split
    by: str  # "rows" or "groups"

    def train(self, most: int | None = None, seed: int = 0) -> Rows:
        """Return the training rows, `most` of them at random."""
        chosen = self.split.train
        if most is not None and len(chosen) > most:
            chosen = np.sort(np.random.default_rng(seed).choice(chosen, most, replace=False))
        return self.task.X[chosen], self.task.y[chosen]

    @property
    def validation(self) -> Rows:
        """Rows for every choice that is made."""
        return self.task.X[self.split.validation], self.task.y[self.split.validation]

    @property
    def test(self) -> Rows:
        """Rows that score, and nothing else."""
        return self.task.X[self.split.test], self.task.y[self.split.test]

    @property
    def test_groups(self) -> NDArray[np.int64] | None:
        """The group of each test row, where there are groups."""
        return None if self.task.groups is None else self.task.groups[self.split.test]

    @property
    def clusters(self) -> NDArray[np.int64] | None:
        """The groups that make test rows depend on each other, where whole groups are tested."""
        return self.test_groups if self.by == "groups" else None

    @property
    def outputs(self) -> int:
        """Columns of the target; for classes, their number."""
        return len(self.task.classes) or len(self.task.targets)

    def describe(self) -> TaskFacts:
        """Return what a report says of the task."""
        task, split = self.task, self.split
        target, floor = None, None
        if not task.classes:
            y = task.y
            target = TargetRange(float(y.mean()), float(y.std()), float(y.min()), float(y.max()))
            floor = deviation_floor(int(y[split.test].size))
        return TaskFacts(
            title=catalogue.find(task.name).title,
            kind=task.kind,
            simulated=task.simulated,
            source=task.source,
            unit=task.unit,
            classes=list(task.classes),
            split=split.how,
            grouped_by=task.grouped_by,
            rows=PartSizes(len(split.train), len(split.validation), len(split.test)),
            inputs=len(task.features),
            outputs=self.outputs,
            target=target,
            floor=floor,
        )


@lru_cache(maxsize=1)
def _load(study: Study, name: str) -> Parts:
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
    """Return at most `most` rows of a task, at random and in their order."""
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
