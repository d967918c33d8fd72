"""Calibration curves as in the paper's figures 1 to 3: observed against nominal coverage.

Three panels: RDeepSense and the GP with MCDrop-k, with SSP-k and with RDeepSense-MCk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import nan
from typing import TYPE_CHECKING

from rdeepsense.experiments.paper.score import CalibrationCurve
from rdeepsense.experiments.paper.task_results import TaskResults
from rdeepsense.experiments.report.method_styles import PAPER, RECOMMENDED, style
from rdeepsense.experiments.report.pictures import Panel, Picture, finish, legend_below
from rdeepsense.plot.figures import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COMMON = (RECOMMENDED, PAPER, "GP")
_PANELS = {"MCDrop-k": "MCDrop-", "SSP-k": "SSP-", "RDeepSense-MCk": "RDeepSense-"}
SIZE = (4.4, 5.3)


def calibration(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw the three panels; None for a task without a calibration curve, as one of classes."""
    curves = {
        method: cell.calibration
        for method, cell in task.methods.items()
        if cell.calibration is not None
    }
    if not curves:
        return None
    common = [method for method in _COMMON if method in curves]
    rivals = {
        title: [m for m in curves if m not in common and m.startswith(start)]
        for title, start in _PANELS.items()
    }
    shown = {title: names for title, names in rivals.items() if names} or {"": []}
    draw = partial(_draw, curves=curves, common=common)
    lines = max(len(common) + 1, *(len(names) for names in shown.values()))
    panels = tuple(
        Panel(title, partial(draw, rivals=names, lines=lines), SIZE)
        for title, names in shown.items()
    )
    return Picture(
        f"{name}-calibration",
        f"{name}: calibration curves",
        "Share of test values inside the central interval against the share there should be. On "
        "the diagonal the intervals are right; below it they are too narrow (the uncertainty is "
        "underestimated), above it too wide. RDeepSense and the GP are in "
        "every panel.",
        origin,
        panels,
    )


def _draw(
    axes: Axes,
    curves: Mapping[str, CalibrationCurve],
    common: Sequence[str],
    rivals: Sequence[str],
    lines: int,
) -> None:
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=1.2, label="perfect")
    for method in (*common, *rivals):
        own, curve = style(method), curves[method]
        main = own.k is None
        axes.plot(
            [0, *(100 * level for level in curve.levels)],
            [0, *(nan if share is None else 100 * share for share in curve.observed)],
            color=own.colour, linestyle=own.dash, linewidth=2.2 if main else 1.5,
            marker=own.k_marker, markersize=5.5 if main else 4.5, markevery=slice(1, None, 2),
            label=method, zorder=3 if main else 2,
        )  # fmt: skip
    finish(axes, "nominal coverage (%)", "observed coverage (%)")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 101)
    _legend(axes, len(common) + 1, lines)


def _legend(axes: Axes, left: int, lines: int) -> None:
    """Put what all panels share on the left, its rivals on the right, at one height in all."""
    handles, labels = axes.get_legend_handles_labels()
    blank = axes.plot([], [], " ")[0]
    pairs = list(zip(handles, labels, strict=True))
    parts = (pairs[:left], pairs[left:])
    entries = [entry for part in parts for entry in [*part, *[(blank, "")] * (lines - len(part))]]
    drawn, said = zip(*entries, strict=True)
    legend_below(axes, drawn, said, fontsize=9, handlelength=2.3, columnspacing=0.8)
