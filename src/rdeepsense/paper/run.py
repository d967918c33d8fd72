"""Run a study: read finished cells, compute the others, collect the results."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from rdeepsense import __version__
from rdeepsense._files import write_whole
from rdeepsense._progress import long_progress
from rdeepsense._records import LEFT_OUT, Record
from rdeepsense.comparison.methods import FAMILIES, REFERENCE, Method, by_family, parse, parse_all
from rdeepsense.engines import Engine, Failure, Local
from rdeepsense.errors import InputError, RDeepSenseError
from rdeepsense.paper.cells import VERSION, KeptWork, Machine, read_cell, run_kept, write_cell
from rdeepsense.paper.claims import ClaimVerdict, claims_of
from rdeepsense.paper.scores import (
    AlphaTraining,
    Costs,
    EnergySource,
    Examples,
    FamilyTraining,
    MethodTraining,
    PredictionCost,
    TaskResults,
    alpha_over_seeds,
    method_over_seeds,
)
from rdeepsense.paper.study import ALPHAS, METHODS, TASKS, Preset, Study, TaskFacts

# --------------------------------------------------------------------------------------------------
# Cells of a study
#
# A cell is known by everything that its figures follow from: data, settings, seed, the code. Its
# file name carries a hash of that, so another setting is another cell.
# --------------------------------------------------------------------------------------------------

# About how long a cell takes, relative to others: the time left follows from it.
WEIGHTS = {"RDeepSense": 12, "RDeepSense-paper": 3, "MCDrop": 3, "SSP": 4, "SSP-paper": 3, "GP": 4}
TASK_WEIGHTS = {"BPEst": 6, "HHAR": 3}


Content = TaskFacts | FamilyTraining | AlphaTraining | Costs


@dataclass(frozen=True)
class FinishedCell(Record):
    """The work of a cell, how long it took and when it was done."""

    content: Content
    seconds: float
    date: str


@dataclass(frozen=True)
class StudyCell:
    """A piece of work: the facts of a `task`, a `family`, an `alpha` of the study, or `cost`."""

    study: Study
    task: str
    kind: str
    methods: tuple[Method, ...] = ()  # of one family; for the cost, all
    alpha: float | None = None
    repeat: int = 0  # which training of `family` and `alpha`

    @property
    def seed(self) -> int:
        """The seed of the training; the rows and their parts follow from the study's."""
        return self.study.seed + self.repeat

    @property
    def label(self) -> str:
        """A name to show, and to begin the name of the file with."""
        what = {"task": "data", "cost": "time and energy", "alpha": f"alpha {self.alpha}"}
        words = f"{self.task}, {what.get(self.kind) or self.methods[0].family}"
        return words if self.kind in ("task", "cost") else f"{words}, seed {self.seed}"

    @property
    def weight(self) -> int:
        """About how long it takes, relative to others."""
        own = WEIGHTS.get(self.methods[0].family, 1) if self.kind == "family" else 1
        return own * TASK_WEIGHTS.get(self.task, 1)

    @cached_property
    def key(self) -> dict[str, object]:
        """Everything that the figures follow from, as JSON has it."""
        preset = asdict(self.study.preset)
        del preset["rows"]  # the data's key has those of this task
        del preset["seeds"]  # a training does not know how many others there are
        key = {
            "kind": self.kind,
            "task": self.task,
            "data": self.study.data_key(self.task),
            "preset": preset,
            "methods": [method.name for method in self.methods],
            "options": {m.family: asdict(FAMILIES[m.family]) for m in self.methods},
            "alpha": self.alpha,
            "seed": self.seed,
            "version": VERSION,
        }
        plain: dict[str, object] = json.loads(json.dumps(key))
        return plain

    @property
    def file_name(self) -> str:
        """The file that keeps the finished cell."""
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:10]
        what = self.label.replace(", ", "-").replace(" ", "-")
        return f"{what}-{digest}.json"

    def run(self) -> FinishedCell:
        """Do the work; takes long."""
        from rdeepsense.paper import fits  # late: it needs torch, finished cells do not

        begin = time.perf_counter()
        parts = self.study.load(self.task)
        content: Content
        if self.kind == "task":
            content = parts.describe()
        elif self.kind == "cost":
            content = fits.measure_cost(self.study, parts, self.methods)
        elif self.alpha is not None:
            content = fits.fit_alpha(self.study, parts, self.alpha, self.seed)
        else:
            content = fits.fit_family(self.study, parts, self.methods, self.seed)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return FinishedCell(content, time.perf_counter() - begin, today)

    def read(self, folder: Path) -> FinishedCell | None:
        """Return the finished cell, or None."""
        return read_cell(folder / self.file_name, self.key, FinishedCell.from_json)

    def write(self, folder: Path, finished: FinishedCell) -> None:
        """Keep the finished cell."""
        write_cell(folder / self.file_name, self.key, finished.to_json())


def cells_of(study: Study, tasks: Sequence[str], methods: Sequence[Method]) -> list[StudyCell]:
    """Return all cells, task by task and seed by seed, the long ones first; the timing last."""
    cells: list[StudyCell] = []
    families = sorted(by_family(methods).values(), key=lambda f: -WEIGHTS.get(f[0].family, 1))
    for task in tasks:
        cells.append(StudyCell(study, task, "task"))
        for repeat in range(study.preset.seeds):
            cells += [StudyCell(study, task, "family", own, repeat=repeat) for own in families]
            if any(method.family == "RDeepSense-paper" for method in methods):
                cells += [StudyCell(study, task, "alpha", (), alpha, repeat) for alpha in ALPHAS]
    return cells + [StudyCell(study, task, "cost", tuple(methods)) for task in tasks]


# --------------------------------------------------------------------------------------------------
# Results of a study from finished cells, in any order of completion
# --------------------------------------------------------------------------------------------------

ROWS = "Standard errors are over test rows, whole groups together where whole groups are tested"
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "gpytorch")
Done = Mapping[StudyCell, FinishedCell]


@dataclass(frozen=True, kw_only=True)
class StudyResults(Record):
    """Everything that results.json holds; no path of this machine is in it."""

    preset: str
    command: str
    date: str
    machine: Machine
    versions: Mapping[str, str]
    # Files of early versions have neither of the next two.
    seeds: int | None = field(default=None, metadata=LEFT_OUT)
    errors: str | None = field(default=None, metadata=LEFT_OUT)
    seconds: float
    device: EnergySource | None
    tasks: Mapping[str, TaskResults]
    claims: Sequence[ClaimVerdict]


def results_of(
    study: Study, tasks: Sequence[str], methods: Sequence[Method], done: Done
) -> StudyResults:
    """Return what the finished cells say together."""
    costs = [own.content for own in done.values() if isinstance(own.content, Costs)]
    found = {task: _task(task, methods, done) for task in tasks}
    return StudyResults(
        preset=study.preset.name,
        command=_command(study, tasks),
        date=max(own.date for own in done.values()),
        machine=Machine.this(),
        versions=_versions(),
        seeds=study.preset.seeds,
        errors=_errors(study.preset.seeds),
        seconds=sum(own.seconds for own in done.values()),
        device=costs[0].device if costs else None,
        tasks=found,
        claims=claims_of(found),
    )


def _errors(seeds: int) -> str:
    if seeds == 1:
        return (
            f"{ROWS}. Every model was trained once: what another seed would change is not in them."
        )
    return (
        f"{ROWS}, and over {seeds} trainings, each from a seed of its own on the same rows. "
        "Figures are means over the trainings."
    )


def _task(task: str, methods: Sequence[Method], done: Done) -> TaskResults:
    facts: TaskFacts | None = None
    costs: Mapping[str, PredictionCost] = {}
    trained: dict[str, list[MethodTraining]] = {}
    study: dict[float, list[AlphaTraining]] = {}
    for cell, finished in done.items():
        if cell.task != task:
            continue
        match finished.content:
            case TaskFacts() as facts:
                pass
            case Costs(methods=costs):
                pass
            case AlphaTraining() as training if cell.alpha is not None:
                study.setdefault(cell.alpha, []).append(training)
            case FamilyTraining(methods=family):
                for name, own in family.items():
                    trained.setdefault(name, []).append(own)
    if facts is None:
        raise RDeepSenseError(f"{task}: the cell that describes its data is not finished")
    named = [method.name for method in methods if method.name in trained]
    return TaskResults(
        **{one.name: getattr(facts, one.name) for one in fields(facts)},
        methods={name: method_over_seeds(trained[name], costs.get(name)) for name in named},
        alpha_study=[alpha_over_seeds(alpha, own) for alpha, own in sorted(study.items())],
        examples=_examples([trained[name][0] for name in sorted(named, key=_after_reference)]),
    )


def _after_reference(name: str) -> bool:
    """Sort the reference before the others."""
    return name != REFERENCE


def _examples(trainings: Sequence[MethodTraining]) -> Examples | None:
    return next((own.examples for own in trainings if own.examples is not None), None)


def _command(study: Study, tasks: Sequence[str]) -> str:
    names = "all" if tuple(tasks) == TASKS else ",".join(tasks)
    words = ["rdeepsense reproduce", names, f"--preset {study.preset.name}"]
    if study.data is not None:
        words.append("--data DIR")
    if study.seed:
        words.append(f"--seed {study.seed}")
    return " ".join(words)


def _versions() -> dict[str, str]:
    found = {"rdeepsense": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


# --------------------------------------------------------------------------------------------------
# Running a study: finished cells are read, others are computed
# --------------------------------------------------------------------------------------------------

RESULTS = "results.json"
MOST_JOBS = 4  # by default: each has its own torch and its own rows


@dataclass(frozen=True)
class StudyOutcome:
    """The results of a study, how many cells there are, ran now and failed."""

    results: StudyResults
    cells: int
    ran: int
    failed: list[tuple[str, str]]  # a cell's label and what went wrong


def run(
    tasks: Sequence[str],
    preset: Preset,
    out: Path,
    data: Path | None = None,
    methods: Sequence[str] | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    quiet: bool = False,
) -> StudyOutcome:
    """Run what is not finished yet under `out`; write results.json there.

    Without an engine there are up to 4 processes of this machine.
    A cell that fails does not stop the others; it leaves no file and is tried again next time.
    """
    asked = methods or default_methods()
    for method in map(parse, asked):
        if FAMILIES[method.family].is_peer:
            raise InputError(f"{method.name} is no method of the paper: see compare and benchmark")
    chosen = parse_all(asked)
    # Resolved: other processes may stand elsewhere.
    study = Study(preset, None if data is None else data.resolve(), seed)
    cells = cells_of(study, tasks, chosen)
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    done = {cell: found for cell in cells if (found := cell.read(folder)) is not None}
    pending = [cell for cell in cells if cell not in done]
    failed: list[tuple[str, str]] = []
    if pending:
        progress = long_progress(quiet)
        total = sum(cell.weight for cell in cells)
        finished = sum(cell.weight for cell in done)
        progress.start("reproduce", total, finished)
        progress.update(finished, f"{len(done)} of {len(cells)} cells, first {pending[0].label}")
        try:
            for cell, result in _results(pending, folder, engine or default_engine()):
                if isinstance(result, Failure):
                    failed.append((cell.label, result.reason))
                else:
                    done[cell] = result
                finished += cell.weight
                count = len(done) + len(failed)
                progress.update(finished, f"{count} of {len(cells)} cells, last {cell.label}")
        finally:
            progress.close()
    results = results_of(study, tasks, chosen, {cell: done[cell] for cell in cells if cell in done})
    text = json.dumps(results.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(out / RESULTS, text)
    return StudyOutcome(results, len(cells), len(pending) - len(failed), failed)


def default_methods() -> tuple[str, ...]:
    """Return every method of the paper; GP only where its library is installed."""
    return tuple(name for name in METHODS if name != "GP" or find_spec("gpytorch"))


def default_engine() -> Local:
    """Return processes of this machine, a core each, but not many."""
    return Local(min(MOST_JOBS, os.cpu_count() or 1))


def _results(
    pending: Sequence[StudyCell], folder: Path, engine: Engine
) -> Iterator[tuple[StudyCell, FinishedCell | Failure]]:
    """Yield each cell with its result, or with its failure, as they finish.

    First the data, here: what is wrong with it should be said at once. Last the timing, here and
    alone: it is about this machine.
    """
    for cell in (cell for cell in pending if cell.kind == "task"):
        yield cell, KeptWork(cell, folder.resolve()).run()
    trainings = [cell for cell in pending if cell.kind in ("family", "alpha")]
    timings = [cell for cell in pending if cell.kind == "cost"]
    parts: list[tuple[list[StudyCell], Engine]] = [(trainings, engine), (timings, Local(1))]
    for cells, where in parts:
        for number, result in run_kept(cells, folder, where):
            yield cells[number], result
