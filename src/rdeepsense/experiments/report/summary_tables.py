"""The tables that stand before the tasks: at a glance, what holds, the data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rdeepsense.experiments.paper import published
from rdeepsense.experiments.paper.claims import ClaimVerdict
from rdeepsense.experiments.paper.study import PartSizes, TargetRange
from rdeepsense.experiments.paper.task_results import TaskResults
from rdeepsense.experiments.report.cell_text import NONE, area, count, number, percent, plain, span
from rdeepsense.experiments.report.method_styles import PAPER, RECOMMENDED
from rdeepsense.experiments.report.task_tables import ours
from rdeepsense.experiments.text_table import TextTable


def origin(task: TaskResults) -> str:
    """Return the word on every badge."""
    return "simulated" if task.simulated else "real"


def glance(task: TaskResults) -> TextTable:
    """Return the recommended model and the paper's method in a few figures."""
    shown = [name for name in (RECOMMENDED, PAPER) if name in task.methods]
    shown = shown or list(task.methods)[:2]
    cells = [task.methods[name] for name in shown]
    figures = [cell.figures for cell in cells]

    def line(label: str, key: str) -> list[str]:
        return [label, *(number(*ours(one, key)) for one in figures)]

    rows = [
        line("Accuracy (%)", "accuracy")
        if task.is_classification
        else line(f"MAE ({task.unit or 'units of the target'})", "mae"),
        line("NLL, full (nats)", "nll"),
    ]
    if any(one.get("coverage_90") is not None for one in figures):
        held = [percent(one.get("coverage_90")) for one in figures]
        rows.append(["In the 90\u00a0% interval (%)", *held])
    if task.floor is not None:
        rows.append(["Deviation area", *(area(one) for one in figures)])
        rows.append(["– its floor", *[f"{task.floor:.4f}"] * len(figures)])
    elif any(one.get("ece") is not None for one in figures):
        rows.append(line("Calibration error (ECE)", "ece"))
    rows.append(["Passes", *(count(cell.passes) for cell in cells)])
    return TextTable(task.title, "", ["", *shown], rows)


def verdicts(found: Sequence[ClaimVerdict], tasks: Sequence[str]) -> TextTable:
    """Return a line for each claim of the paper, a column for each task that it is about."""
    tally = Counter(one.verdict for one in found)
    caption = (
        f"{len(found)} verdicts: {tally['yes']} yes, {tally['no']} no, "
        f"{tally['not decidable']} not decidable from this run."
    )
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for one in found:
        lines.setdefault((one.claim, one.section), {})[one.task] = one.verdict
    rows = [[*key, *(line.get(task, "") for task in tasks)] for key, line in lines.items()]
    return TextTable("The paper's claims", caption, ["Claim", "Section", *tasks], rows)


def measurements(found: Sequence[ClaimVerdict]) -> TextTable:
    """Return the numbers that every verdict is from."""
    header = ["Claim", "Section", "Task", "Holds?", "Measured here", "Why"]
    rows = [
        [text or NONE for text in (v.claim, v.section, v.task, v.verdict, v.measured, v.why)]
        for v in found
    ]
    return TextTable("What was measured, claim by claim", "", header, rows)


def datasets(tasks: Mapping[str, TaskResults]) -> TextTable:
    """Return the paper's table 2: sizes and outputs, a line of ours above a line of the paper's."""
    header = ["Data set", "Data", "Train", "Validation", "Test", "Inputs", "Outputs",
              "Output mean", "Output std", "Output range", "Unit"]  # fmt: skip
    rows: list[list[str]] = []
    aside = set()
    for name, task in tasks.items():
        shape = [count(task.inputs), count(task.outputs)]
        rows.append([name, origin(task), *_data(task, task.rows, shape, task.target)])
        if name in published.DATA:
            aside.add(len(rows))
            sizes, target = published.DATA[name]
            rows.append([f"{name}, paper", "real", *_data(task, sizes, [NONE, NONE], target)])
    return TextTable(
        "Data sets (the paper's table 2)",
        "A row is a window, a trip or a reading: what one prediction is made from. In italics: "
        "the paper's own data.",
        header,
        rows,
        aside=aside,
    )


def _data(
    task: TaskResults,
    sizes: PartSizes,
    shape: list[str],
    target: TargetRange | None,
) -> list[str]:
    ends = f"{len(task.classes)} classes"
    if not task.is_classification:
        ends = NONE if target is None else span(target.min, target.max)
    moments = [NONE, NONE] if target is None else [plain(target.mean), plain(target.std)]
    parts = [count(size) for size in (sizes.train, sizes.validation, sizes.test)]
    return [*parts, *shape, *moments, ends, task.unit or NONE]
