"""The tables that stand before the tasks: at a glance, what holds, the data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rdeepsense.experiments.paper import published
from rdeepsense.experiments.report.cell_text import NONE, area, count, number, plain, span
from rdeepsense.experiments.report.method_styles import PAPER, RECOMMENDED
from rdeepsense.experiments.report.task_tables import ours
from rdeepsense.experiments.uci.tables import Table

Task = Mapping[str, Any]
PARTS = ("train", "validation", "test")


def origin(task: Task) -> str:
    """The word on every badge."""
    return "simulated" if task["simulated"] else "real"


def glance(task: Task) -> Table:
    """The recommended model and the paper's method in a few figures."""
    shown = [name for name in (RECOMMENDED, PAPER) if name in task["methods"]]
    shown = shown or list(task["methods"])[:2]
    cells = [task["methods"][name] for name in shown]
    figures = [cell["figures"] for cell in cells]

    def line(label: str, key: str) -> list[str]:
        return [label, *(number(*ours(one, key)) for one in figures)]

    rows = [
        line("Accuracy (%)", "accuracy")
        if task["kind"] == "classification"
        else line(f"MAE ({task.get('unit') or 'units of the target'})", "mae"),
        line("NLL, full (nats)", "nll"),
    ]
    if task.get("floor") is not None:
        rows.append(["Deviation area", *(area(one) for one in figures)])
        rows.append(["– its floor", *[f"{task['floor']:.4f}"] * len(figures)])
    elif any(one.get("ece") is not None for one in figures):
        rows.append(line("Calibration error (ECE)", "ece"))
    rows.append(["Passes", *(count(cell.get("passes")) for cell in cells)])
    return Table(str(task.get("title") or ""), "", ["", *shown], rows)


def verdicts(results: Mapping[str, Any]) -> Table:
    """A line for each claim of the paper, a column for each task that it is about."""
    found = results["claims"]
    tally = Counter(one["verdict"] for one in found)
    caption = (
        f"{len(found)} verdicts: {tally['yes']} yes, {tally['no']} no, "
        f"{tally['not decidable']} not decidable from this run."
    )
    tasks = list(results["tasks"])
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for one in found:
        lines.setdefault((one["claim"], one["section"]), {})[one["task"]] = one["verdict"]
    rows = [[*key, *(line.get(task, "") for task in tasks)] for key, line in lines.items()]
    return Table("The paper's claims", caption, ["Claim", "Section", *tasks], rows)


def measurements(found: Sequence[Mapping[str, Any]]) -> Table:
    """What every verdict is from."""
    header = ["Claim", "Section", "Task", "Holds?", "Measured here", "Why"]
    keys = ("claim", "section", "task", "verdict", "measured", "why")
    rows = [[str(one.get(key) or NONE) for key in keys] for one in found]
    return Table("What was measured, claim by claim", "", header, rows)


def datasets(tasks: Mapping[str, Task]) -> Table:
    """The paper's table 2: sizes and outputs, a line of ours above a line of the paper's."""
    header = ["Data set", "Data", "Train", "Validation", "Test", "Inputs", "Outputs",
              "Output mean", "Output std", "Output range", "Unit"]  # fmt: skip
    rows: list[list[str]] = []
    aside = set()
    for name, task in tasks.items():
        shape = [count(task.get("inputs")), count(task.get("outputs"))]
        rows.append([name, origin(task), *_data(task, task["rows"], shape, task.get("target"))])
        if name in published.DATA:
            aside.add(len(rows))
            theirs = published.DATA[name]
            rows.append([f"{name}, paper", "real", *_data(task, theirs, [NONE, NONE], theirs)])
    return Table(
        "Data sets (the paper's table 2)",
        "A row is a window, a trip or a reading: what one prediction is made from. In italics: "
        "the paper's own data.",
        header,
        rows,
        aside=aside,
    )


def _data(
    task: Task, sizes: Mapping[str, Any], shape: list[str], target: Mapping[str, Any] | None
) -> list[str]:
    known = target or {}
    ends = f"{len(task.get('classes') or [])} classes"
    if task["kind"] == "regression":
        ends = span(known.get("min"), known.get("max"))
    moments = [plain(known.get(key)) for key in ("mean", "std")]
    parts = [count(sizes.get(part)) for part in PARTS]
    return [*parts, *shape, *moments, ends, task.get("unit") or NONE]
