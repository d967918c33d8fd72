"""From finished cells to the results of a study, the same whenever they are put together."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version

from rdeepsense import __version__
from rdeepsense.errors import RDeepSenseError
from rdeepsense.experiments.machine import Machine
from rdeepsense.experiments.methods import REFERENCE, Method
from rdeepsense.experiments.paper.cells import FinishedCell, StudyCell
from rdeepsense.experiments.paper.claims import ClaimVerdict, claims_of
from rdeepsense.experiments.paper.presets import TASKS
from rdeepsense.experiments.paper.score import Examples
from rdeepsense.experiments.paper.seeds import alpha_over_seeds, method_over_seeds
from rdeepsense.experiments.paper.study import Study, TaskFacts
from rdeepsense.experiments.paper.task_results import TaskResults
from rdeepsense.experiments.paper.trainings import (
    AlphaTraining,
    Costs,
    EnergySource,
    FamilyTraining,
    MethodTraining,
    PredictionCost,
)
from rdeepsense.experiments.records import LEFT_OUT, Record

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
