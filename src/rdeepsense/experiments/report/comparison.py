"""Figures that put methods side by side: NLL differences and deviation areas.

Methods are told apart by their labels, never by colour alone; colours are Okabe and Ito's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rdeepsense.errors import require
from rdeepsense.experiments.uci.statistics import Summary
from rdeepsense.plot.figures import BLUE, GREY, INK, LARGE, NORMAL, SMALL, VERMILION, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Summary]
FAR = 10.0  # times the typical difference: beyond, it would hide the others and is written out
COLUMNS = 3


def comparison_figure(tables: Mapping[str, Rows], reference: str = "RDeepSense") -> Figure:
    """Draw NLL differences above, deviation areas below; a column for each data set.

    `tables` has the rows of a comparison for each data set (one of no name is fine). Without the
    reference among the methods the NLL itself is drawn, and classes have no deviation area.
    """
    rows = next(iter(tables.values()))
    draws = [draw_nll, *([draw_deviation] if rows[0].pooled is not None else [])]
    first = [row.method for row in rows]
    columns = min(COLUMNS, len(tables))
    lines = -(-len(tables) // columns)
    height = len(draws) * lines * (1.25 + 0.27 * len(rows))
    figure: Figure = require("matplotlib.figure", "report").Figure(
        figsize=(3.2 + 3.2 * columns, height + 0.3), layout="constrained"
    )
    if any(tables):
        figure.suptitle("NLL differences, then deviation areas" if len(draws) > 1 else "NLL",
                        fontsize=LARGE, color=INK)  # fmt: skip
    figure.get_layout_engine().set(h_pad=0.1)  # type: ignore[union-attr, call-arg]
    grid = figure.subplots(len(draws) * lines, columns, squeeze=False)
    for place, (name, rows) in enumerate(tables.items()):
        line, column = divmod(place, columns)
        for number, draw in enumerate(draws):
            axes = grid[number * lines + line, column]
            draw(axes, rows, reference)
            axes.set_title(name, fontsize=NORMAL, color=INK, loc="left")
            if column and [row.method for row in rows] == first:
                axes.set_yticklabels([])
    for place in range(len(tables), lines * columns):
        for number in range(len(draws)):
            grid[number * lines + place // columns, place % columns].set_visible(False)
    return literal(figure)


def comparison_panels(rows: Rows, reference: str = "RDeepSense") -> list[Figure]:
    """Draw the same for one data set, each as a figure that is still easily read on a phone."""
    figures = []
    for draw in [draw_nll, *([draw_deviation] if rows[0].pooled is not None else [])]:
        figure: Figure = require("matplotlib.figure", "report").Figure(
            figsize=(4.6, 1.1 + 0.27 * len(rows)), layout="constrained"
        )
        draw(figure.subplots(), rows, reference)
        figures.append(literal(figure))
    return figures


def draw_nll(axes: Axes, rows: Rows, reference: str) -> None:
    """Draw paired differences in NLL, ± 2 standard errors; left of 0 beats the reference.

    What is too far out to be drawn beside the others is written at the edge.
    """
    paired = any(row.differences["nll"].value is not None for row in rows if row.differences)
    points = [(row.differences if paired else row.means)["nll"] for row in rows]
    sizes = sorted(abs(value) for value, _ in points if value)
    limit = FAR * max(sizes[(len(sizes) - 1) // 2], 0.2) if paired and sizes else math.inf
    if paired:
        axes.axvline(0, color=GREY, linewidth=1)
    for place, (row, (value, error)) in enumerate(zip(rows, points, strict=True)):
        if value is None:
            continue
        if abs(value) > limit:
            _far_out(axes, place, value)
            continue
        hollow = paired and row.method == reference
        bar = 2 * error if error else None
        axes.errorbar(value, place, xerr=bar, fmt="o", color=BLUE, markersize=6, capsize=3,
                      markerfacecolor="white" if hollow else BLUE)  # fmt: skip
    _label(axes, rows, f"NLL − {reference}, ± 2 s.e." if paired else "NLL, ± 2 s.e.")


def _far_out(axes: Axes, place: int, value: float) -> None:
    """Draw an arrow at the edge with the value beside it, for what is too far out."""
    edge = 1.0 if value > 0 else 0.0
    across = axes.get_yaxis_transform()  # x from edge to edge, y in methods
    axes.plot(edge, place, ">" if value > 0 else "<", color=VERMILION, transform=across,
              clip_on=False)  # fmt: skip
    axes.annotate(f"{value:+.3g}", (edge, place), xytext=(-8 if value > 0 else 8, 0),
                  xycoords=across, textcoords="offset points", fontsize=SMALL, color=VERMILION,
                  ha="right" if value > 0 else "left", va="center")  # fmt: skip


def draw_deviation(axes: Axes, rows: Rows, reference: str) -> None:
    """Draw the deviation area of all test rows, and the floor that a perfect model has."""
    pooled = [row.pooled for row in rows if row.pooled is not None]
    areas, floor = [own.pooled_area for own in pooled], pooled[0].pooled_floor
    for place, area in enumerate(areas):
        axes.plot([0, area], [place, place], color=BLUE, linewidth=2)
        axes.plot(area, place, "o", color=BLUE, markersize=6)
    axes.axvline(floor, color=VERMILION, linestyle="--", linewidth=1.4)
    axes.annotate(f"floor {floor:.3f}", (floor, -0.62), xytext=(3, 0), textcoords="offset points",
                  fontsize=SMALL, color=VERMILION, va="center")  # fmt: skip
    axes.set_xlim(0, 1.1 * max(2 * floor, *areas))
    _label(axes, rows, "deviation area, pooled")


def _label(axes: Axes, rows: Rows, x: str) -> None:
    axes.set_yticks(range(len(rows)), [row.method for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.95)
    axes.set_xlabel(x, fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color="#E6E6E6", linewidth=0.6)
