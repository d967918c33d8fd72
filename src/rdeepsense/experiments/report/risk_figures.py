"""Risk-coverage curves, and how the 90 % interval does in each group (user, record, day)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rdeepsense.experiments.paper.score import RiskCurve
from rdeepsense.experiments.paper.task_results import TaskResults
from rdeepsense.experiments.report.method_styles import representatives, style
from rdeepsense.experiments.report.pictures import Panel, Picture, finish, legend_below, rows
from rdeepsense.plot.figures import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GOLDEN = 0.6180339887498949


def risk_coverage(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw the error that remains when the least certain predictions are refused."""
    curves = {
        method: cell.risk_coverage
        for method, cell in task.methods.items()
        if cell.risk_coverage is not None and cell.risk_coverage.kept
    }
    if not curves:
        return None
    shown = {method: curves[method] for method in representatives(curves)}
    return Picture(
        f"{name}-risk",
        f"{name}: error when the least certain predictions are refused",
        "A curve that falls means that the stated uncertainty knows where the errors are. One "
        "method of each family, that of the largest k.",
        origin,
        (Panel("", partial(_curves, curves=shown), (4.8, 4.9)),),
    )


def _curves(axes: Axes, curves: Mapping[str, RiskCurve]) -> None:
    for method, curve in curves.items():
        own = style(method)
        pairs = [
            (100 * (1 - kept), risk)
            for kept, risk in zip(curve.kept, curve.risk, strict=True)
            if risk is not None
        ]
        axes.plot([pair[0] for pair in pairs], [pair[1] for pair in pairs], color=own.colour,
                  linestyle=own.dash, linewidth=2, marker=own.marker, markersize=6,
                  markevery=max(1, len(pairs) // 6), label=method)  # fmt: skip
    finish(axes, "least certain predictions refused (%)", next(iter(curves.values())).risk_name)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    legend_below(axes)


def groups(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw one dot for each group: the coverage of its 90 % intervals, its accuracy for classes."""
    found = {m: own.group_coverage for m, own in task.methods.items() if own.group_coverage}
    if not found:
        return None
    by = task.grouped_by or "group"
    classes = task.is_classification
    shown = {method: found[method] for method in representatives(found)}
    label = f"accuracy, one dot per {by} (%)" if classes else f"values inside, one dot per {by} (%)"
    title = "Accuracy" if classes else "Coverage of the 90 % interval"
    draw = partial(_strips, shares=shown, label=label, line=None if classes else 90.0)
    caption = (
        "The thick bar is the median. "
        + ("" if classes else "A model can be right on average (the line) and wrong in most "
           f"{by}s: the spread of the dots tells. ")
        + "One method of each family, that of the largest k."
    )  # fmt: skip
    return Picture(
        f"{name}-groups",
        f"{name}: {title[0].lower()}{title[1:]}, {by} by {by}",
        caption,
        origin,
        (Panel("", draw, (4.8, 1.2 + 0.5 * len(shown))),),
    )


def _strips(
    axes: Axes, shares: Mapping[str, Sequence[float | None]], label: str, line: float | None
) -> None:
    if line is not None:
        axes.axvline(line, color=GREY, linewidth=1.2)
    for place, (method, values) in enumerate(shares.items()):
        x = 100 * np.array([value for value in values if value is not None])
        # The fractional parts of multiples of the golden ratio are spread evenly, without chance.
        y = place + 0.6 * (np.modf(GOLDEN * np.arange(1, x.size + 1))[0] - 0.5)
        own = style(method)
        axes.plot(x, y, own.marker, color=own.colour, markersize=4.5, alpha=0.6,
                  markeredgewidth=0, linestyle="none")  # fmt: skip
        if x.size:
            middle = float(np.median(x))
            axes.plot([middle, middle], [place - 0.36, place + 0.36], color=INK, linewidth=2.4)
    finish(axes, label, grid="x")
    rows(axes, list(shares))
    axes.set_xlim(right=100.8)
