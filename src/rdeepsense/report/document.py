"""The report of a reproduction as sections of text, tables and pictures, in the order of reading.

The page and the Markdown file both walk through these, so that they say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rdeepsense.benchmark.tables import Table
from rdeepsense.report.alpha_figures import alpha_study
from rdeepsense.report.calibration_panels import calibration
from rdeepsense.report.cell_text import choices, count
from rdeepsense.report.cost_figures import cost, quality
from rdeepsense.report.example_figures import examples
from rdeepsense.report.method_styles import PAPER, RECOMMENDED
from rdeepsense.report.pictures import Picture
from rdeepsense.report.risk_figures import groups, risk_coverage
from rdeepsense.report.spread_figures import spread
from rdeepsense.report.summary_tables import claims, datasets, glance, origin
from rdeepsense.report.task_tables import beyond, costs, paper_table

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Text:
    """A paragraph; a list of points where `points` has some."""

    text: str
    points: tuple[str, ...] = ()


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Card:
    """A task at a glance."""

    task: str
    origin: str
    table: Table


@dataclass(frozen=True)
class Claims:
    """The table of verdicts, which the page colours."""

    table: Table


Block = Text | Heading | Card | Claims | Table | Picture


@dataclass(frozen=True)
class Section:
    """A part of the report; `origin` marks every table in it as simulated or real."""

    name: str
    title: str
    origin: str | None
    blocks: tuple[Block, ...]


def sections(results: Results) -> list[Section]:
    """The whole report."""
    tasks = results["tasks"]
    parts = [Section("summary", "At a glance", None, tuple(_summary(results)))]
    if results.get("claims"):
        text = Text("Each claim of the paper with what was measured here, and why it holds or not.")
        held = Section("claims", "What holds", None, (text, Claims(claims(results["claims"]))))
        parts.append(held)
    table = datasets(tasks)
    parts.append(Section("data", "The data", None, (table, _sources(tasks))))
    for name, task in tasks.items():
        blocks = _task(name, task, results.get("device") or {})
        title = f"{name}: {task['title']}" if task.get("title") else name
        parts.append(Section(name, title, origin(task), tuple(blocks)))
    return [*parts, Section("run", "This run", None, tuple(_run(results)))]


def _summary(results: Results) -> list[Block]:
    about = {
        method: cell.get("about")
        for task in results["tasks"].values()
        for method, cell in task["methods"].items()
    }
    roles = {RECOMMENDED: "the recommended automatic model", PAPER: "the paper's own method"}
    points = tuple(
        f"{method}, {role}: {about[method]}." for method, role in roles.items() if method in about
    )
    text = [Text("What two models give on the test rows of each task.", points)] if points else []
    cards = [Card(name, origin(task), glance(task)) for name, task in results["tasks"].items()]
    return [*text, *cards]


def _sources(tasks: Results) -> Text:
    return Text(
        "Where the rows come from, and what the test rows are:",
        tuple(
            f"{name} ({origin(task)}): {task.get('source') or 'no source given'}. Test rows: "
            f"{task.get('split') or 'no split given'}."
            for name, task in tasks.items()
        ),
    )


def _task(name: str, task: Results, device: Results) -> list[Block]:
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
    chosen = tuple(
        f"{method}: {choices(cell['chosen'])}"
        for method, cell in task["methods"].items()
        if cell.get("chosen")
    )
    more: list[Block | None] = [
        Heading("Beyond the paper"),
        beyond(name, task),
        Text("Chosen on validation rows:", chosen) if chosen else None,
        costs(name, task, device),
        spread(name, task, kind),
        groups(name, task, kind),
        risk_coverage(name, task, kind),
        examples(name, task, kind),
    ]
    warned = tuple(
        f"{method}: {words}"
        for method, cell in task["methods"].items()
        for words in cell.get("warnings") or []
    )
    last = [Text("Warnings of this task:", warned)] if warned else []
    blocks = [*paper, *(Text(words) for words in missing), *more, *last]
    return [block for block in blocks if block is not None]


def _run(results: Results) -> list[Block]:
    device = results.get("device") or {}
    facts = {
        "Command": results.get("command"),
        "Preset": results.get("preset"),
        "Date": results.get("date"),
        "Seconds": count(results.get("seconds")),
        "Machine": _listed(results.get("machine")),
        "Versions": _listed(results.get("versions")),
        "Energy": ". ".join(str(device[key]) for key in ("profile", "how") if device.get(key)),
    }
    methods = {
        method: str(cell.get("about") or "")
        for task in results["tasks"].values()
        for method, cell in task["methods"].items()
    }
    return [
        Text("How these figures came about:", tuple(f"{k}: {v}" for k, v in facts.items() if v)),
        Text("The methods:", tuple(f"{name}: {words}" for name, words in methods.items() if words)),
    ]


def _listed(facts: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{key} {value}" for key, value in (facts or {}).items())
