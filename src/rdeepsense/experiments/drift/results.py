"""From finished cells to the results of the studies: means over seeds, as records and as tables."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from rdeepsense import __version__
from rdeepsense.experiments.drift.cells import STUDIES, DriftCell
from rdeepsense.experiments.drift.trial import DriftTrial
from rdeepsense.experiments.machine import Machine
from rdeepsense.experiments.records import Record
from rdeepsense.experiments.text_table import TextTable
from rdeepsense.experiments.uci.statistics import with_error

MEANS = ("error", "accuracy", "coverage", "width", "nll")


@dataclass(frozen=True)
class Figure(Record):
    """The mean over seeds and its standard error; of alarms the median, without one."""

    value: float
    standard_error: float | None
    seeds: int


@dataclass(frozen=True)
class Summary(Record):
    """One way with so many labels, over the seeds."""

    task: str
    way: str
    labels: str
    figures: Mapping[str, Figure]


@dataclass(frozen=True)
class CellScores(Record):
    """What one seed chose and how long it took; its scores are in its cell's file."""

    task: str
    seed: int
    seconds: float
    chosen: Mapping[str, object]


@dataclass(frozen=True)
class DriftResults(Record):
    """All that was found."""

    summary: Sequence[Summary]
    cells: Sequence[CellScores]
    machine: Machine
    versions: Mapping[str, str]


def results_of(done: Sequence[tuple[DriftCell, DriftTrial]]) -> DriftResults:
    """Summarise finished cells."""
    import torch

    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for cell, trial in done:
        for score in trial.scores:
            own = found.setdefault((cell.task, score.way, score.labels), {})
            for name, value in score.figures.items():
                own.setdefault(name, []).append(value)
    summary = [
        Summary(*key, {name: _figure(name, values) for name, values in own.items()})
        for key, own in found.items()
    ]
    cells = [CellScores(cell.task, cell.seed, one.seconds, one.chosen) for cell, one in done]
    versions = {
        "rdeepsense": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    return DriftResults(summary, cells, Machine.this(), versions)


def _figure(name: str, values: list[float]) -> Figure:
    count = len(values)
    if name == "alarm":
        return Figure(float(median(values)), None, count)
    return Figure(fmean(values), stdev(values) / count**0.5 if count > 1 else None, count)


def tables_of(results: DriftResults) -> list[TextTable]:
    """Return a table for each study: a row for each way and its labels."""
    tables = []
    for task in dict.fromkeys(row.task for row in results.summary):
        rows = [row for row in results.summary if row.task == task]
        shown = [name for name in MEANS if any(name in row.figures for row in rows)]
        alarms = any("alarm" in row.figures for row in rows)
        seeds = sum(1 for cell in results.cells if cell.task == task)
        study = STUDIES[task]
        heads = {"error": f"MAE, {study.unit}", "coverage": "90 % holds", "nll": "NLL"}
        heads["accuracy"] = "accuracy, %"
        if "accuracy" in shown:
            heads["width"] = "size of set"
        header = ["way", "labels", *(heads.get(name, name) for name in shown)]
        lines = [
            [row.way, row.labels, *(_cell(name, row.figures.get(name)) for name in shown)]
            + [_cell("alarm", row.figures.get("alarm"))] * alarms
            for row in rows
        ]
        caption = f"Mean ± standard error of {seeds} seeds." if seeds > 1 else "One seed."
        if alarms:
            header.append("alarm")
            caption += " alarm: rows until it rang, median."
        caption += f" {study.remark}" if study.remark else ""
        tables.append(TextTable(study.title, caption, header, lines))
    return tables


def _cell(name: str, figure: Figure | None) -> str:
    if figure is None:
        return "-"
    if name == "alarm":
        return f"{figure.value:g}"
    factor, error = 100 if name == "accuracy" else 1, figure.standard_error
    return with_error(factor * figure.value, None if error is None else factor * error)
