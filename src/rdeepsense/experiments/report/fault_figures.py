"""When a sensor fails: which faults each method notices, what it says then; a map and two tables.

Each method has a line for its own score; RDeepSense has two more, for its epistemic (Laplace) score
and for the novelty of its inputs.
Results of earlier versions hold no faults, and then there is nothing to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rdeepsense.errors import require
from rdeepsense.experiments.paper.faults import HEALTHY, TESTED
from rdeepsense.experiments.paper.task_results import TaskResults
from rdeepsense.experiments.paper.trainings import Faults
from rdeepsense.experiments.report.cell_text import NONE, number, percent
from rdeepsense.experiments.report.pictures import Panel, Picture, finish, rows
from rdeepsense.experiments.text_table import TextTable
from rdeepsense.plot.figures import BLUE, INK, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Line = tuple[str, Faults, str]  # name, figures, suffix of a score
DEEPEST = 0.55  # opacity at 100 %, over which letters can still be read in either scheme
ABOUT = (
    "One sensor channel, drawn at random for each test row, is broken: stuck (it repeats one "
    "reading), saturated (it stays at its highest reading), dropped (it reads 0), drift (it moves "
    "away by up to 3 standard deviations), jitter (noise of one standard deviation is added) or "
    "swapped (with another axis or channel). The faults are simulated whatever the data is. A row "
    "is flagged where the score of a method is above what 5\u00a0% of the healthy validation rows "
    "exceed. The score is the predicted standard deviation (for classes, 1 − the probability of "
    "the predicted class); “laplace” is the epistemic score of the same model and the same single "
    "pass (for classes, mutual information); “novelty” is how unlike training rows the inputs are, "
    "whatever the model makes of them. One method of each family, that of the largest k."
)


def fault_map(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw the share of rows that is flagged: a line for each score, a column for each fault."""
    lines = _lines(task)
    if not lines:
        return None
    return Picture(
        f"{name}-faults",
        f"{name}: rows flagged when a sensor fails (%)",
        "The stronger the colour, the more rows are flagged. In the column “healthy” they are "
        "false alarms: 5 is right. 100 would be right everywhere else.",
        origin,
        (Panel("", partial(_draw, lines=lines), (5.0, 1.3 + 0.3 * len(lines))),),
    )


def flagged(name: str, task: TaskResults, origin: str) -> TextTable | None:
    """Return the share flagged, and in brackets the AUROC of faulty against healthy rows."""
    lines = _lines(task)
    if not lines:
        return None
    kinds = _kinds(lines)
    body = [
        [label, *(_seen(figures.get(kind, {}), suffix) for kind in kinds)]
        for label, figures, suffix in lines
    ]
    caption = (
        "In brackets: AUROC, the probability that a faulty row has a higher score than a healthy "
        "one; 0.5 is chance. Healthy rows: false alarms."
    )
    title = f"{name}, {origin} data: rows flagged (%)"
    return TextTable(title, caption, ["Score", *kinds], body)


def answered(name: str, task: TaskResults, origin: str) -> TextTable | None:
    """Return the error on faulty rows, and the coverage of the 90 % interval."""
    lines = [line for line in _lines(task) if not line[2]]
    if not lines:
        return None
    kinds = _kinds(lines)
    classes = task.is_classification
    body = [
        [label, *(_said(figures.get(kind, {}), classes) for kind in kinds)]
        for label, figures, _ in lines
    ]
    few = (
        f" All columns, “healthy” too, are of {min(TESTED, task.rows.test):,} of the "
        f"{task.rows.test:,} test rows, drawn at random and the same for every method: its figures "
        "differ from those of all test rows."
    )
    if classes:
        what, caption = "wrong predictions (%)", "Of the rows with a broken channel."
    else:
        what = f"MAE ({task.unit or 'units of the target'}), coverage (%)"
        caption = (
            "After the comma: how many true values are inside the 90 % interval. A method that "
            "noticed the fault would widen it and keep the 90."
        )
    title = f"{name}, {origin} data: {what}"
    return TextTable(title, caption + few, ["Method", *kinds], body)


def _lines(task: TaskResults) -> list[Line]:
    found: list[Line] = []
    for method, cell in task.methods.items():
        figures = cell.faults
        if figures:
            found.append((method, figures, ""))
            for name, suffix in (("laplace", "_epistemic"), ("novelty", "_novelty")):
                if f"flagged{suffix}" in figures[HEALTHY]:
                    found.append((f"{method}, {name}", figures, suffix))
    return found


def _kinds(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(kind for _, figures, _ in lines for kind in figures))


def _seen(figures: Mapping[str, float | None], suffix: str) -> str:
    share, area = figures.get(f"flagged{suffix}"), figures.get(f"auroc{suffix}")
    return percent(share) + ("" if area is None else f" ({area:.2f})")


def _said(figures: Mapping[str, float | None], classes: bool) -> str:
    error, coverage = figures.get("error"), figures.get("coverage_90")
    if error is None:
        return NONE
    return percent(error) if classes else f"{number(error)}, {percent(coverage)}"


def _draw(axes: Axes, lines: Sequence[Line]) -> None:
    rectangle = require("matplotlib.patches", "report").Rectangle
    kinds = _kinds(lines)
    for place, (_, figures, suffix) in enumerate(lines):
        for column, kind in enumerate(kinds):
            share = figures.get(kind, {}).get(f"flagged{suffix}")
            if share is not None:
                corner = (column - 0.47, place - 0.45)
                axes.add_patch(rectangle(corner, 0.94, 0.9, facecolor=BLUE, linewidth=0,
                                         alpha=DEEPEST * share))  # fmt: skip
                axes.text(column, place, f"{100 * share:.0f}", ha="center", va="center",
                          fontsize=SMALL, color=INK)  # fmt: skip
    finish(axes, "")
    axes.grid(False)
    rows(axes, [label for label, _, _ in lines])
    axes.set_xticks(range(len(kinds)), kinds, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.55, len(kinds) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.spines["bottom"].set_visible(False)
