"""Time and energy of one prediction (the paper's figures 4 to 7); quality against energy (8)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from rdeepsense.errors import require
from rdeepsense.experiments.paper.task_results import TaskResults
from rdeepsense.experiments.paper.trainings import EnergySource
from rdeepsense.experiments.report.cell_text import short
from rdeepsense.experiments.report.method_styles import style
from rdeepsense.experiments.report.pictures import (
    Panel,
    Picture,
    finish,
    legend_below,
    plain_log,
    row_height,
    rows,
)
from rdeepsense.plot.figures import GREY, INK, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WHERE = {"estimated": "for", "measured": "on"}
FAR = 100.0  # beyond this ratio of the longest bar to the shortest, the axis is logarithmic


def energy_label(task: TaskResults, device: EnergySource | None) -> str:
    """Return the label of the energy axis: how the figures came about and on what device."""
    known = {cell.cost.energy for cell in task.methods.values() if cell.cost is not None}
    how = " and ".join(f"{word} {_WHERE.get(word, 'on')}" for word in sorted(known))
    return f"energy (mJ), {how} {device.profile if device else 'this machine'}"


def cost(name: str, task: TaskResults, origin: str, device: EnergySource | None) -> Picture | None:
    """Draw bars of time and energy for each method; None where no cost was taken."""
    found = {m: own.cost for m, own in task.methods.items() if own.cost is not None}
    labels = {
        "microseconds": ("Inference time", "time of one prediction (µs)"),
        "millijoules": ("Energy", energy_label(task, device)),
    }
    panels = []
    for key, (title, label) in labels.items():
        values: dict[str, float] = {method: getattr(one, key) for method, one in found.items()}
        if values:
            draw = partial(_bars, values=values, label=label)
            panels.append(Panel(title, draw, (4.8, row_height(len(values)))))
    if not panels:
        return None
    return Picture(
        f"{name}-cost",
        f"{name}: time and energy of one prediction",
        "One row at a time. A method that samples k times or asks k networks pays for k passes. "
        + (device.how if device else ""),
        origin,
        tuple(panels),
        columns=2,
    )


def _bars(axes: Axes, values: Mapping[str, float], label: str) -> None:
    log = max(values.values()) > FAR * min(values.values()) > 0
    low = 0.5 * min(values.values()) if log else 0.0
    if log:
        axes.set_xscale("log")
    for place, (method, value) in enumerate(values.items()):
        axes.barh(place, value - low, left=low, height=0.66, color=style(method).colour)
        axes.annotate(short(value), (value, place), xytext=(4, 0), fontsize=SMALL, va="center",
                      textcoords="offset points")  # fmt: skip
    top = max(values.values())
    axes.set_xlim(low, top * (top / low) ** 0.16 if log else 1.16 * top)
    finish(axes, label + (", log scale" if log else ""), grid="x")
    rows(axes, list(values))
    if log:
        plain_log(axes.xaxis)
    else:
        axes.xaxis.set_major_locator(
            require("matplotlib.ticker", "report").MaxNLocator(5, steps=[1, 2, 5, 10])
        )
        axes.xaxis.set_major_formatter("{x:,g}")


def quality(
    name: str, task: TaskResults, origin: str, device: EnergySource | None
) -> Picture | None:
    """Draw deviation area (negative MEFP for classes) against energy: down and left is better."""
    classes = task.is_classification
    points: dict[str, list[tuple[float, float, int | None]]] = {}
    for method, cell in task.methods.items():
        value = cell.figures.get("mefp" if classes else "deviation_area")
        energy = 0.0 if cell.cost is None else cell.cost.millijoules
        if value is not None and energy:
            own = style(method)
            points.setdefault(own.family, []).append((energy, -value if classes else value, own.k))
    if not points:
        return None
    what = "negative MEFP (nats)" if classes else "deviation area"
    draw = partial(_scatter, points=points, x=energy_label(task, device), y=what,
                   floor=None if classes else task.floor)  # fmt: skip
    return Picture(
        f"{name}-quality-energy",
        f"{name}: {what.split(' (')[0]} against energy",
        "Down and to the left is better. The number at a point is k, the passes of one "
        "prediction." + (" MEFP rewards uniform guesses: read it beside the accuracy." if classes
                         else " The dashed line is what a perfect model has on average."),
        origin,
        (Panel("", draw, (4.8, 4.9)),),
    )  # fmt: skip


def _scatter(
    axes: Axes,
    points: Mapping[str, list[tuple[float, float, int | None]]],
    x: str,
    y: str,
    floor: float | None,
) -> None:
    axes.set_xscale("log")
    for family, places in points.items():
        own = style(family)
        places = sorted(places)
        axes.plot([p[0] for p in places], [p[1] for p in places], color=own.colour,
                  marker=own.marker, markersize=11 if own.marker == "*" else 8, linewidth=1,
                  linestyle=":" if len(places) > 1 else "none", label=family, clip_on=False,
                  zorder=3)  # fmt: skip
        for energy, value, k in places:
            if k is not None:
                axes.annotate(str(k), (energy, value), xytext=(5, 5), textcoords="offset points",
                              fontsize=SMALL, color=INK)  # fmt: skip
    if floor is not None:
        axes.axhline(floor, color=GREY, linestyle="--", linewidth=1.2, label="floor")
        axes.set_ylim(bottom=0)
    finish(axes, x + ", log scale", y)
    axes.margins(0.08)
    plain_log(axes.xaxis)
    legend_below(axes)
