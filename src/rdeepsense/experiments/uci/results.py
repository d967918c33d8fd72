"""From finished cells to the results of a benchmark."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rdeepsense import __version__
from rdeepsense.experiments.machine import Machine
from rdeepsense.experiments.methods import REFERENCE, Method
from rdeepsense.experiments.records import Record, plain
from rdeepsense.experiments.uci.published import PUBLISHED, REMARK
from rdeepsense.experiments.uci.run import BenchmarkOutcome
from rdeepsense.experiments.uci.statistics import BySplit, SplitScore, Summary, summarise


@dataclass(frozen=True)
class Settings(Record):
    """Arguments that all cells share."""

    hidden: Sequence[int] | str
    seed: int


@dataclass(frozen=True)
class DataSetSize(Record):
    """The size of a data set."""

    rows: int
    inputs: int
    splits: int


@dataclass(frozen=True)
class CellScore:
    """The score of one method in one cell."""

    dataset: str
    split: int
    method: Method
    chosen: Mapping[str, object] | None
    score: SplitScore

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        score = self.score
        return {
            "dataset": self.dataset,
            "split": self.split,
            "method": self.method.name,
            "passes": self.method.passes,
            "fit_seconds": score.fit_seconds,
            "chosen": plain(self.chosen),
            **score.score.to_json(),
        }


@dataclass(frozen=True)
class PublishedScore(Record):
    """Published means of one method on the data sets at hand."""

    method: str
    source: str
    remark: str
    nll: Mapping[str, float]
    rmse: Mapping[str, float]

    def by_dataset(self, figure: str) -> Mapping[str, float] | None:
        """Return `nll` or `rmse`, None for a figure that was not published."""
        return {"nll": self.nll, "rmse": self.rmse}.get(figure)


@dataclass(frozen=True)
class FamilyWarnings(Record):
    """A count of the cells of a family that warned, with the first warning."""

    family: str
    cells: int
    example: str


@dataclass(frozen=True)
class FailedCell(Record):
    """A cell without a result, and why."""

    dataset: str
    split: int
    family: str
    error: str


@dataclass(frozen=True)
class BenchmarkResults:
    """Everything that results.json holds; no path of this machine is in it."""

    settings: Settings
    methods: Sequence[Method]
    datasets: Mapping[str, DataSetSize]
    summary: Mapping[str, Sequence[Summary]]  # by data set, a row for each method
    published: Sequence[PublishedScore]
    warnings: Sequence[FamilyWarnings]
    failed: Sequence[FailedCell]
    cells: Sequence[CellScore]
    machine: Machine
    versions: Mapping[str, str]

    @property
    def reference(self) -> str | None:
        """The method that differences are taken against, if it is among them."""
        return REFERENCE if any(method.name == REFERENCE for method in self.methods) else None

    def to_json(self) -> dict[str, object]:
        """Return plain data, ready for `json.dumps`."""
        return {
            "benchmark": "uci",
            "settings": self.settings.to_json(),
            "reference": self.reference,
            "methods": {m.name: {"passes": m.passes, "about": m.about} for m in self.methods},
            "datasets": plain(self.datasets),
            "summary": [
                {"dataset": name, **row.to_json()}
                for name, rows in self.summary.items()
                for row in rows
            ],
            "published": plain(self.published),
            "warnings": plain(self.warnings),
            "failed": plain(self.failed),
            "cells": [cell.to_json() for cell in self.cells],
            "machine": self.machine.to_json(),
            "versions": dict(self.versions),
        }


def results_of(
    outcome: BenchmarkOutcome, methods: Sequence[Method], hidden: tuple[int, ...] | str, seed: int
) -> BenchmarkResults:
    """Return what the finished cells say, alone and together."""
    cells = [
        CellScore(
            cell.data.name,
            cell.split,
            method,
            trial.chosen,
            SplitScore(trial.fit_seconds, trial.methods[method.name]),
        )
        for cell, trial in outcome.done
        for method in cell.methods
    ]
    datasets = {cell.data.name: cell.data for cell, _ in outcome.done}
    return BenchmarkResults(
        settings=Settings(hidden, seed),
        methods=methods,
        datasets={
            name: DataSetSize(len(data.y), data.x.shape[1], data.splits)
            for name, data in datasets.items()
        },
        summary={name: _summary(name, methods, cells) for name in datasets},
        published=_published(list(datasets)),
        warnings=_warnings(outcome),
        failed=[
            FailedCell(cell.data.name, cell.split, cell.family, failure.reason)
            for cell, failure in outcome.failed
        ],
        cells=cells,
        machine=Machine.this(),
        versions={
            "rdeepsense": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
    )


def _summary(dataset: str, methods: Sequence[Method], cells: list[CellScore]) -> list[Summary]:
    by_method: dict[str, BySplit] = {
        method.name: {
            cell.split: cell.score
            for cell in cells
            if (cell.dataset, cell.method) == (dataset, method)
        }
        for method in methods
    }
    reference = by_method.get(REFERENCE)
    return [
        summarise(method, by_method[method.name], reference, "regression")
        for method in methods
        if by_method[method.name]
    ]


def _published(datasets: Sequence[str]) -> list[PublishedScore]:
    rows = []
    for published in PUBLISHED:
        nll, rmse = (
            {name: value for name in datasets if (value := published.figure(name, key)) is not None}
            for key in ("nll", "rmse")
        )
        if nll:
            rows.append(PublishedScore(published.method, published.source, REMARK, nll, rmse))
    return rows


def _warnings(outcome: BenchmarkOutcome) -> list[FamilyWarnings]:
    by_family: dict[str, list[str]] = {}
    for cell, trial in outcome.done:
        if trial.warnings:
            by_family.setdefault(cell.family, []).append(trial.warnings[0])
    return [FamilyWarnings(family, len(texts), texts[0]) for family, texts in by_family.items()]
