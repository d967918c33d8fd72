"""A few test cases with their 90 % bands: waveforms as lines, single values as bars."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rdeepsense.experiments.report.pictures import Panel, Picture, finish, legend_below
from rdeepsense.plot.figures import BLUE, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 60  # so many points are told apart as bars; more are a line


def examples(name: str, task: Mapping[str, Any], origin: str) -> Picture | None:
    """A panel for each case; None where the task has none to show."""
    given = task.get("examples")
    if not given or not given.get("cases"):
        return None
    axis = {"x": given["x"], "x_label": given["x_label"], "y_label": given["y_label"]}
    panels = tuple(
        Panel(case["title"], partial(_case, case=case, **axis), (4.8, 3.4))
        for case in given["cases"]
    )
    return Picture(
        f"{name}-examples",
        f"{name}: examples from the test rows",
        "RDeepSense, one pass. Nine of ten true values should be inside the 90 % band.",
        origin,
        panels,
        columns=2,
    )


def _case(axes: Axes, case: Mapping[str, Any], x: Any, x_label: str, y_label: str) -> None:
    low, mean, high, truth = (
        np.array(case[key], dtype=float) for key in ("low", "mean", "high", "truth")
    )
    where = np.asarray(x, dtype=float)
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
    finish(axes, x_label, y_label)
    axes.margins(x=0.02)
    legend_below(axes, ncols=3)
