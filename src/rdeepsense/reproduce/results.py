"""From finished cells to results.json: plain data, the same whenever it is put together."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rdeepsense import __version__
from rdeepsense.methods import REFERENCE, Method
from rdeepsense.reproduce.cells import Cell
from rdeepsense.reproduce.claims import claims_of
from rdeepsense.reproduce.presets import TASKS
from rdeepsense.reproduce.study import Study

ERRORS = (
    "Standard errors are over test rows, clustered by group where whole groups are tested. Every "
    "model was trained once, and what another seed of training would change is not in them."
)
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
        "errors": ERRORS,
        "seconds": sum(found["seconds"] for found in done.values()),
        "device": costs[0]["device"] if costs else None,
        "tasks": {task: _task(task, methods, done) for task in tasks},
    }
    return results | {"claims": claims_of(results)}


def _task(task: str, methods: Sequence[Method], done: Done) -> dict[str, Any]:
    own = {cell: found["content"] for cell, found in done.items() if cell.task == task}
    judged: dict[str, Any] = {}
    described: dict[str, Any] = {}
    costs: dict[str, Any] = {}
    study = []
    for cell, content in own.items():
        if cell.kind == "task":
            described = content
        elif cell.kind == "cost":
            costs = content["methods"]
        elif cell.kind == "alpha":
            study.append(content)
        else:
            judged |= content
    shown = {m.name: judged[m.name] | {"cost": costs.get(m.name)} for m in methods
             if m.name in judged}  # fmt: skip
    examples = [method.pop("examples", None) for name, method in sorted(
        shown.items(), key=lambda item: item[0] != REFERENCE)]  # fmt: skip
    return {
        **described,
        "methods": shown,
        "alpha_study": sorted(study, key=lambda point: float(point["alpha"])),
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
