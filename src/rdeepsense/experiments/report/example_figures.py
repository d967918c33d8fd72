"""A few test cases with their 90 % bands: waveforms as lines, single values as bars."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rdeepsense.experiments.paper.score import ExampleCase, Examples
from rdeepsense.experiments.paper.task_results import TaskResults
from rdeepsense.experiments.report.pictures import Panel, Picture, finish, legend_below
from rdeepsense.plot.figures import BLUE, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 60  # points that can be told apart as bars; more are a line


def examples(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw a panel for each case; None where the task has none to show."""
    given = task.examples
    if given is None or not given.cases:
        return None
    panels = tuple(
        Panel(case.title, partial(_draw, given=given, case=case), (4.8, 3.4))
        for case in given.cases
    )
    return Picture(
        f"{name}-examples",
        f"{name}: examples from the test rows",
        "RDeepSense, one pass. Nine of ten true values should be inside the 90 % band.",
        origin,
        panels,
        columns=2,
    )


def _draw(axes: Axes, given: Examples, case: ExampleCase) -> None:
    where, low, mean, high, truth = (
        np.array(values, dtype=float)
        for values in (given.x, case.low, case.mean, case.high, case.truth)
    )
    if where.size <= FEW:
        room = min(6.0, 200 / where.size)  # points across, so that neighbours stay apart
        axes.vlines(where, low, high, color=BLUE, alpha=0.4, linewidth=room, label="90 % band")
        axes.plot(where, mean, "_", color=BLUE, markersize=1.5 * room, markeredgewidth=2,
                  label="predicted")  # fmt: skip
        axes.plot(where, truth, "o", color=INK, markersize=4, label="true")
    else:
        axes.fill_between(where, low, high, color=BLUE, alpha=0.25, linewidth=0, label="90 % band")
        axes.plot(where, mean, color=BLUE, linewidth=2, label="predicted")
        axes.plot(where, truth, color=INK, linestyle="--", linewidth=1.4, label="true")
    finish(axes, given.x_label, given.y_label)
    axes.margins(x=0.02)
    legend_below(axes, ncols=3)
