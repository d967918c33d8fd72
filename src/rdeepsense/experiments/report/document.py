"""The report of a reproduction as sections of text, tables and pictures, in the order of reading.

The page and the Markdown file both walk through these, so that they say the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from rdeepsense.experiments.paper.results import StudyResults
from rdeepsense.experiments.paper.task_results import MethodResults, TaskResults
from rdeepsense.experiments.paper.trainings import EnergySource
from rdeepsense.experiments.report.alpha_figures import alpha_study
from rdeepsense.experiments.report.blocks import Block, Card, Claims, Heading, Section, Text
from rdeepsense.experiments.report.calibration_panels import calibration
from rdeepsense.experiments.report.cell_text import choices, count
from rdeepsense.experiments.report.cost_figures import cost, quality
from rdeepsense.experiments.report.example_figures import examples
from rdeepsense.experiments.report.fault_figures import ABOUT, answered, fault_map, flagged
from rdeepsense.experiments.report.method_styles import PAPER, RECOMMENDED, style
from rdeepsense.experiments.report.risk_figures import groups, risk_coverage
from rdeepsense.experiments.report.spread_figures import spread
from rdeepsense.experiments.report.summary_tables import (
    datasets,
    glance,
    measurements,
    origin,
    verdicts,
)
from rdeepsense.experiments.report.task_tables import beyond, costs, paper_table

JUDGED = (
    f"Each claim of the paper, judged on each task that it is about; its RDeepSense is {PAPER} "
    "here. Two methods differ where the 95\u00a0% interval of their difference, on the same test "
    "rows and over all trainings, does not hold 0; what the intervals leave open is not decidable. "
    "They are not widened for the number of claims: of twenty pairs that do not differ, about one "
    "is found to."
)
CHOSEN = (
    "Settings, chosen on validation rows where a method leaves them open (one for each training "
    "where they differ):"
)


def sections(results: StudyResults) -> list[Section]:
    """Return the whole report."""
    tasks = results.tasks
    parts = [Section("summary", "At a glance", None, tuple(_summary(results)))]
    if results.claims:
        found = Claims(verdicts(results.claims, list(tasks)), measurements(results.claims))
        parts.append(Section("claims", "What holds", None, (Text(JUDGED), found)))
    table = datasets(tasks)
    parts.append(Section("data", "The data", None, (table, _sources(tasks))))
    for name, task in tasks.items():
        blocks = _task(name, task, results.device)
        title = f"{name}: {task.title}" if task.title else name
        parts.append(Section(name, title, origin(task), tuple(blocks)))
    failing = [block for name, task in tasks.items() for block in _faults(name, task)]
    if failing:
        parts.append(Section("faults", "When a sensor fails", None, (Text(ABOUT), *failing)))
    return [*parts, Section("run", "This run", None, tuple(_run(results)))]


def _summary(results: StudyResults) -> list[Block]:
    about = {
        method: cell.about
        for task in results.tasks.values()
        for method, cell in task.methods.items()
    }
    roles = {RECOMMENDED: "the recommended automatic model: ", PAPER: ""}
    points = tuple(
        f"{method}: {role}{about[method]}." for method, role in roles.items() if method in about
    )
    text = [Text("What two models give on the test rows of each task.", points)] if points else []
    cards = [Card(name, origin(task), glance(task)) for name, task in results.tasks.items()]
    return [*text, *cards]


def _sources(tasks: Mapping[str, TaskResults]) -> Text:
    return Text(
        "Where the rows come from, and what the test rows are:",
        tuple(
            f"{name} ({origin(task)}): {task.source or 'no source given'}. Test rows: "
            f"{task.split or 'no split given'}."
            for name, task in tasks.items()
        ),
    )


def _task(name: str, task: TaskResults, device: EnergySource | None) -> list[Block]:
    kind = origin(task)
    paper: list[Block | None] = [
        paper_table(name, task),
        calibration(name, task, kind),
        cost(name, task, kind, device),
        quality(name, task, kind, device),
        alpha_study(name, task, kind),
    ]
    missing = [
        words
        for words, block in (
            ("No time or energy was taken in this run.", paper[2]),
            ("No alpha study was made in this run.", paper[4]),
        )
        if block is None
    ]
    chosen = {
        style(method).family: choices(cell.chosen)
        for method, cell in task.methods.items()
        if cell.chosen
    }
    more: list[Block | None] = [
        Heading("Beyond the paper"),
        beyond(name, task),
        Text(CHOSEN, tuple(f"{family}: {words}" for family, words in chosen.items()))
        if chosen
        else None,
        costs(name, task, device),
        spread(name, task, kind),
        groups(name, task, kind),
        risk_coverage(name, task, kind),
        examples(name, task, kind),
    ]
    warned = _warnings(task.methods)
    last = [Text("Warnings of this task:", warned)] if warned else []
    blocks = [*paper, *(Text(words) for words in missing), *more, *last]
    return [block for block in blocks if block is not None]


def _faults(name: str, task: TaskResults) -> list[Block]:
    kind = origin(task)
    found: list[Block | None] = [
        fault_map(name, task, kind),
        flagged(name, task, kind),
        answered(name, task, kind),
    ]
    blocks = [block for block in found if block is not None]
    return [Heading(name), *blocks] if blocks else []


def _warnings(methods: Mapping[str, MethodResults]) -> tuple[str, ...]:
    """Return warnings that differ in their numbers alone once for each family."""
    first: dict[tuple[str, str], str] = {}
    count: Counter[tuple[str, str]] = Counter()
    for method, cell in methods.items():
        for words in cell.warnings:
            kind = style(method).family, re.sub(r"\d+", "", words)
            first.setdefault(kind, words)
            count[kind] += 1
    return tuple(
        f"{kind[0]}: {words}" + (f" ({count[kind]} such warnings)" if count[kind] > 1 else "")
        for kind, words in first.items()
    )


def _run(results: StudyResults) -> list[Block]:
    device = results.device
    facts = {
        "Command": results.command,
        "Preset": results.preset,
        "Trainings of each model": results.seeds,
        "Errors": results.errors,
        "Date": results.date,
        "Seconds of all cells": count(results.seconds),
        "Machine": _listed(results.machine.to_json()),
        "Versions": _listed(results.versions),
        "Energy": f"{device.profile}. {device.how}" if device else None,
    }
    methods = {
        style(method).family: cell.about
        for task in results.tasks.values()
        for method, cell in task.methods.items()
    }
    return [
        Text("How these figures came about:", tuple(f"{k}: {v}" for k, v in facts.items() if v)),
        Text("The methods:", tuple(f"{name}: {words}" for name, words in methods.items() if words)),
    ]


def _listed(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in facts.items())
