"""Figures that the paper lacks: the sign of each method's miscalibration, and its sharpness."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from rdeepsense.experiments.paper.task_results import TaskResults
from rdeepsense.experiments.report.method_styles import style
from rdeepsense.experiments.report.pictures import (
    Panel,
    Picture,
    finish,
    plain_log,
    row_height,
    rows,
)
from rdeepsense.plot.figures import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAR = 50.0  # beyond this ratio of the largest value to the smallest, the axis is logarithmic


def spread(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw signed deviation area, coverage and sharpness; ECE and Brier score for classes."""
    cells, floor = task.methods, task.floor
    unit = f" ({task.unit})" if task.unit else ""
    shown: list[tuple[str, str, str, dict[str, Any]]]
    if task.is_classification:
        shown = [
            ("ece", "Calibration error", "expected calibration error (ECE)", {"start": 0.0}),
            ("brier", "Brier score", "Brier score, summed over classes", {"start": 0.0}),
        ]
        caption = "ECE: how far the stated confidence is from the share of hits; 0 is right."
    else:
        shown = [
            ("deviation_area_signed", "Signed deviation area", "− too narrow, + too wide",
             {"line": 0.0, "band": floor}),
            ("coverage_90", "Coverage of the 90 % interval", "values inside (%)",
             {"line": 90.0, "factor": 100.0}),
            ("sharpness", "Sharpness", f"mean predicted std{unit}", {"log": True}),
        ]  # fmt: skip
        band = "" if floor is None else f" The grey band is ± the floor ({floor:.4f})."
        caption = (
            "The signed area says which way the intervals are wrong." + band + " Sharpness is the "
            "mean predicted standard deviation: narrow is good only where the coverage is right."
        )
    panels = []
    for key, title, label, options in shown:
        values = {m: cell.figures.get(key) for m, cell in cells.items()}
        if any(value is not None for value in values.values()):
            draw = partial(_dots, values=values, label=label, **options)
            panels.append(Panel(title, draw, (4.6, row_height(len(values)))))
    if not panels:
        return None
    title = f"{name}: how wide, and how wrong"
    if task.is_classification:
        title = f"{name}: confidence against hits"
    return Picture(f"{name}-spread", title, caption, origin, tuple(panels), same_rows=True)


def _dots(
    axes: Axes,
    values: Mapping[str, float | None],
    label: str,
    line: float | None = None,
    band: float | None = None,
    start: float | None = None,
    log: bool = False,
    factor: float = 1.0,
) -> None:
    """Draw a dot for each method on a thin line from where it should be."""
    values = {method: value and factor * value for method, value in values.items()}
    known = [value for value in values.values() if value is not None]
    log = log and max(known) > FAR * min(known) > 0
    if log:
        axes.set_xscale("log")
    if line is not None:
        axes.axvline(line, color=GREY, linewidth=1.2)
    if band is not None:
        axes.axvspan(-band, band, color=GREY, alpha=0.3, linewidth=0)
    for place, (method, value) in enumerate(values.items()):
        if value is None:
            continue
        own = style(method)
        origin = line if line is not None else start
        if origin is not None:
            axes.plot([origin, value], [place, place], color=own.colour, linewidth=2)
        axes.plot(value, place, own.marker, color=own.colour,
                  markersize=10 if own.marker == "*" else 7)  # fmt: skip
    if start is not None:
        axes.set_xlim(left=start)
    finish(axes, label + (", log scale" if log else ""), grid="x")
    rows(axes, list(values))
    if log:
        plain_log(axes.xaxis)
