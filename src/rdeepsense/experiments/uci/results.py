"""From finished cells to the table of a benchmark, as plain data."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from rdeepsense import __version__
from rdeepsense.experiments.methods import REFERENCE, Method
from rdeepsense.experiments.uci.cells import Cell
from rdeepsense.experiments.uci.published import PUBLISHED, REMARK
from rdeepsense.experiments.uci.run import Outcome
from rdeepsense.experiments.uci.statistics import summarise


def results_of(
    outcome: Outcome, methods: Sequence[Method], hidden: tuple[int, ...], seed: int
) -> dict[str, Any]:
    """Everything that results.json holds; no path of this machine is in it.

    `summary` has a row for each data set and method, `cells` the figures of each split.
    """
    cells = [row for cell, trial in outcome.done for row in _cell_rows(cell, trial)]
    datasets = {cell.data.name: cell.data for cell, _ in outcome.done}
    return {
        "benchmark": "uci",
        "settings": {"hidden": list(hidden), "seed": seed},
        "reference": REFERENCE if any(m.name == REFERENCE for m in methods) else None,
        "methods": {m.name: {"passes": m.passes, "about": m.about} for m in methods},
        "datasets": {
            name: {"rows": len(data.y), "inputs": data.x.shape[1], "splits": data.splits}
            for name, data in datasets.items()
        },
        "summary": [row for name in datasets for row in _summary(name, methods, cells)],
        "published": _published(list(datasets)),
        "warnings": _warnings(outcome),
        "failed": [
            {"dataset": c.data.name, "split": c.split, "family": c.family, "error": error}
            for c, error in outcome.failed
        ],
        "cells": cells,
        "machine": {
            "processor": platform.machine(),
            "system": platform.system(),
            "cores": os.cpu_count(),
        },
        "versions": {
            "rdeepsense": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
    }


def _cell_rows(cell: Cell, trial: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "dataset": cell.data.name,
            "split": cell.split,
            "method": method.name,
            "passes": method.passes,
            "fit_seconds": trial["fit_seconds"],
            "chosen": trial["chosen"],
            **trial["methods"][method.name],
        }
        for method in cell.methods
    ]


def _summary(
    dataset: str, methods: Sequence[Method], cells: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    by_method: dict[str, dict[int, dict[str, Any]]] = {method.name: {} for method in methods}
    for row in cells:
        if row["dataset"] == dataset:
            by_method[row["method"]][row["split"]] = row
    reference = by_method.get(REFERENCE)
    return [
        {
            "dataset": dataset,
            "method": method.name,
            "passes": method.passes,
            **summarise(by_method[method.name], reference, "regression"),
        }
        for method in methods
        if by_method[method.name]
    ]


def _published(datasets: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for published in PUBLISHED:
        figures = {
            key: {
                name: value
                for name in datasets
                if (value := published.figure(name, key)) is not None
            }
            for key in ("nll", "rmse")
        }
        if figures["nll"]:
            row = {"method": published.method, "source": published.source, "remark": REMARK}
            rows.append(row | figures)
    return rows


def _warnings(outcome: Outcome) -> list[dict[str, Any]]:
    """For each family in how many cells something was warned of, with the first example."""
    by_family: dict[str, list[str]] = {}
    for cell, trial in outcome.done:
        if trial["warnings"]:
            by_family.setdefault(cell.family, []).append(trial["warnings"][0])
    return [
        {"family": family, "cells": len(texts), "example": texts[0]}
        for family, texts in by_family.items()
    ]
