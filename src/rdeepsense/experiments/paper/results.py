"""From finished cells to results.json: plain data, the same whenever it is put together."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rdeepsense import __version__
from rdeepsense.experiments.methods import REFERENCE, Method
from rdeepsense.experiments.paper.cells import Cell
from rdeepsense.experiments.paper.claims import claims_of
from rdeepsense.experiments.paper.presets import TASKS
from rdeepsense.experiments.paper.seeds import over_seeds
from rdeepsense.experiments.paper.study import Study

ROWS = "Standard errors are over test rows, whole groups together where whole groups are tested"
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "gpytorch")
Done = Mapping[Cell, Mapping[str, Any]]


def results_of(
    study: Study, tasks: Sequence[str], methods: Sequence[Method], done: Done
) -> dict[str, Any]:
    """Everything that results.json holds; no path of this machine is in it."""
    costs = [found["content"] for cell, found in done.items() if cell.kind == "cost"]
    results: dict[str, Any] = {
        "preset": study.preset.name,
        "command": _command(study, tasks),
        "date": max(found["date"] for found in done.values()),
        "machine": {
            "processor": platform.machine(),
            "system": platform.system(),
            "cores": os.cpu_count(),
        },
        "versions": _versions(),
        "seeds": study.preset.seeds,
        "errors": _errors(study.preset.seeds),
        "seconds": sum(found["seconds"] for found in done.values()),
        "device": costs[0]["device"] if costs else None,
        "tasks": {task: _task(task, methods, done) for task in tasks},
    }
    return results | {"claims": claims_of(results)}


def _errors(seeds: int) -> str:
    if seeds == 1:
        return (
            f"{ROWS}. Every model was trained once: what another seed would change is not in them."
        )
    return (
        f"{ROWS}, and over {seeds} trainings, each from a seed of its own on the same rows. "
        "Figures are means over the trainings."
    )


def _task(task: str, methods: Sequence[Method], done: Done) -> dict[str, Any]:
    described: dict[str, Any] = {}
    costs: dict[str, Any] = {}
    judged: dict[str, list[Any]] = {}
    study: dict[float, list[Any]] = {}
    for cell, found in done.items():
        content = found["content"]
        if cell.task != task:
            continue
        if cell.kind == "task":
            described = content
        elif cell.kind == "cost":
            costs = content["methods"]
        elif cell.alpha is not None:
            study.setdefault(cell.alpha, []).append(content)
        else:
            for name, own in content.items():
                judged.setdefault(name, []).append(own)
    shown = {m.name: over_seeds(judged[m.name]) | {"cost": costs.get(m.name)} for m in methods
             if m.name in judged}  # fmt: skip
    examples = [method.pop("examples", None) for name, method in sorted(
        shown.items(), key=lambda item: item[0] != REFERENCE)]  # fmt: skip
    points = {alpha: over_seeds(trainings) for alpha, trainings in sorted(study.items())}
    return {
        **described,
        "methods": shown,
        "alpha_study": [{"alpha": a, **own.pop("figures"), **own} for a, own in points.items()],
        "examples": next((example for example in examples if example is not None), None),
    }


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
