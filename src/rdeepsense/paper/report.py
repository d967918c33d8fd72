"""The report of `rdeepsense reproduce`: a page, a Markdown file, pictures."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rdeepsense._files import write_whole
from rdeepsense.pages.html import TextTable, choices, count
from rdeepsense.pages.page import Banner, Block, Card, Claims, Heading, Section, Text, report_page
from rdeepsense.pages.pictures import PAPER, RECOMMENDED, Picture, save, style, whole
from rdeepsense.paper import tables
from rdeepsense.paper.cells import VERSION
from rdeepsense.paper.figures import (
    ABOUT,
    alpha_study,
    answered,
    calibration,
    cost,
    examples,
    fault_map,
    flagged,
    groups,
    quality,
    risk_coverage,
    spread,
)
from rdeepsense.paper.run import StudyResults
from rdeepsense.paper.scores import EnergySource, MethodResults, TaskResults
from rdeepsense.paper.tables import (
    beyond,
    costs,
    datasets,
    finding,
    glance,
    measurements,
    origin,
    paper_table,
    verdicts,
)

# --------------------------------------------------------------------------------------------------
# Sections of the report of a reproduction
#
# The page and the Markdown file both walk through these, so that they say the same.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# The report of a reproduction as Markdown
# --------------------------------------------------------------------------------------------------

# Entities where not every reader of Markdown knows the backslash.
_MARKS = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`*_[]|#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)


def markdown(title: str, opening: str, parts: Sequence[Section]) -> str:
    """Return the whole file."""
    lines = [f"# {escaped(title)}", "", escaped(opening), ""]
    for part in parts:
        badge = f" ({part.origin} data)" if part.origin else ""
        lines += [f"## {escaped(part.title)}{badge}", ""]
        for block in part.blocks:
            if isinstance(block, Banner):
                lines += [f"**{escaped(block.word)}** {escaped(block.text)}", ""]
                lines += [f"- {escaped(one)}" for one in block.points]
            elif isinstance(block, Text):
                lines += [escaped(block.text), "", *(f"- {escaped(one)}" for one in block.points)]
            elif isinstance(block, Heading):
                lines.append(f"### {escaped(block.text)}")
            elif isinstance(block, Picture):
                words = f"{escaped(block.title)} ({block.origin} data)"
                lines += [f"**{words}**", "", f"![{words}](figures/{block.name}.png)", "",
                          escaped(block.caption)]  # fmt: skip
            elif isinstance(block, Card):
                lines += [f"**{escaped(block.task)}** ({block.origin} data): "
                          f"{escaped(block.table.title)}", "", *_table(block.table)]  # fmt: skip
            else:
                for table in _tables(block):
                    lines += [f"**{escaped(table.title)}**{badge}", "", *_table(table), "",
                              escaped(table.caption), ""]  # fmt: skip
            lines.append("")
    text = "\n".join(lines)
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip() + "\n"


def _tables(block: TextTable | Claims) -> list[TextTable]:
    return [block.verdicts, block.measurements] if isinstance(block, Claims) else [block]


def _table(table: TextTable) -> list[str]:
    lines = [table.header, ["---", *["---:"] * (len(table.header) - 1)]]
    for number, row in enumerate(table.rows):
        cells = [escaped(text) for text in row]
        if number in table.aside:
            cells = [f"*{text}*" for text in cells]
        for column in range(len(cells)):
            if (number, column) in table.strong:
                cells[column] = f"**{cells[column]}**"
        lines.append(cells)
    first, *rest = lines
    return ["| " + " | ".join(row) + " |" for row in ([escaped(text) for text in first], *rest)]


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return " ".join(text.split()).translate(_MARKS)


# --------------------------------------------------------------------------------------------------
# Files of the report: figures, page and Markdown
# --------------------------------------------------------------------------------------------------

STAMP = ".report.json"  # of which results and version the report is
TITLE = "RDeepSense, reproduced"


def write(results: StudyResults, out: Path) -> list[Path]:
    """Write figures/*.png and *.svg, report.html and report.md under `out`; return their names.

    What is there of the same results and the same version is left alone.
    """
    digest = hashlib.sha256((json.dumps(results.to_json()) + VERSION).encode()).hexdigest()
    stamp = out / STAMP
    found = _written(stamp, digest)
    if found:
        return found
    stamp.unlink(missing_ok=True)  # until all of the report is of these results
    parts = sections(results)
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for part in parts:
        for block in part.blocks:
            if isinstance(block, Picture):
                written += save(whole(block), folder / block.name)
    opening = _opening(results)
    texts = {
        "report.html": report_page(TITLE, opening, parts),
        "report.md": markdown(TITLE, opening, parts),
    }
    for name, text in texts.items():
        write_whole(out / name, text)
        written.append(out / name)
    names = [file.relative_to(out).as_posix() for file in written]
    write_whole(stamp, json.dumps({"digest": digest, "files": names}))
    return written


def _written(stamp: Path, digest: str) -> list[Path]:
    """Return the files of the report with this digest, where all are there."""
    try:
        known = json.loads(stamp.read_text())
        files = [stamp.parent / name for name in known["files"]]
        return files if known["digest"] == digest and all(map(Path.is_file, files)) else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _opening(results: StudyResults) -> str:
    """Return what was found, and what the report is of, on what data, and at what preset."""
    simulated = [name for name, task in results.tasks.items() if task.simulated]
    real = [name for name, task in results.tasks.items() if not task.simulated]
    words = [
        *filter(None, [finding(results)]),
        f"The evaluation of the paper ({tables.SOURCE}), run again: its tables and figures, "
        "ours beside the paper's, and what the paper does not report.",
    ]
    if simulated:
        words.append(
            f"Simulated data: {', '.join(simulated)}. What is simulated shows how the methods "
            "compare, not what real sensors would give."
        )
    if real:
        words.append(f"Real data: {', '.join(real)}.")
    words.append(f"Preset {results.preset}, {results.date}.")
    return " ".join(words)
