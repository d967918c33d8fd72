"""The page of a comparison: tables, figures and a list of the methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from rdeepsense.comparison.methods import Method
from rdeepsense.comparison.statistics import Summary
from rdeepsense.errors import require
from rdeepsense.pages.html import SORTING, TextTable, page, table
from rdeepsense.pages.pictures import inline_svg
from rdeepsense.plot.figures import BLUE, GREY, INK, LARGE, NORMAL, SMALL, VERMILION, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# Figures of a comparison: NLL differences and deviation areas
#
# Methods are told apart by their labels, never by colour alone; colours are Okabe and Ito's.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# List of the methods, with one line for each
# --------------------------------------------------------------------------------------------------


def method_list(methods: Sequence[Method]) -> str:
    """Return names, lines and forward passes as a list of definitions."""
    items = "\n".join(
        f"<dt>{escape(method.name)}</dt><dd>{escape(method.about)}{_passes(method.passes)}</dd>"
        for method in methods
    )
    return f"<dl>{items}</dl>"


def _passes(passes: int | None) -> str:
    if passes is None:
        return ""
    return f"; {passes} forward pass{'es' if passes > 1 else ''} per prediction"


# --------------------------------------------------------------------------------------------------
# The page of a comparison
# --------------------------------------------------------------------------------------------------

# On a phone a row of a table becomes a card, each cell with the name of its column.
STYLE = """
body { overflow-wrap: break-word; } thead th { vertical-align: bottom; }
th button { all: unset; cursor: pointer; } th button:hover { text-decoration: underline; }
th button:focus-visible, .wide:focus-visible { outline: 2px solid var(--accent);
  outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: "\\a0\\2191"; color: var(--accent); }
th[aria-sort=descending] button::after { content: "\\a0\\2193"; color: var(--accent); }
figure { display: grid; gap: .75rem; align-items: start; justify-items: center;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
figure svg { min-width: 0; width: 100%; max-width: 36rem; }
@media (max-width: 45rem) {
  table.cards { width: 100%; } table.cards thead { display: none; }
  table.cards tr, table.cards td, table.cards tbody th { display: block; position: static; }
  table.cards tr { border: 1px solid var(--line); border-radius: .6rem; margin: 0 0 .75rem;
    padding: .4rem .25rem; }
  table.cards td, table.cards tbody th { border: 0; background: none !important;
    padding: .1rem .6rem; text-align: right; }
  table.cards tbody th { text-align: left; font-weight: 600; }
  table.cards td:empty { display: none; }
  table.cards td::before { content: attr(data-label); float: left; color: var(--soft);
    font-weight: 400; } }
"""


def comparison_page(
    title: str,
    about: str,
    methods: Sequence[Method],
    tables: Sequence[TextTable],
    rows: Sequence[Summary],
    notes: Sequence[str],
) -> str:
    """Return the whole page as text; `notes` are warnings of the fits."""
    labels = ("NLL of each method", "deviation area of each method")
    pictures = [
        inline_svg(one, label) for one, label in zip(comparison_panels(rows), labels, strict=False)
    ]
    parts = [f"<p>{escape(about)}</p>"] if about else []
    parts += [_table(tables[0]), f"<figure>{''.join(pictures)}</figure>"]
    parts += [_table(one) for one in tables[1:]]
    parts.append(f"<h2>The methods</h2>\n{method_list(methods)}")
    if notes:
        points = "".join(f"<li>{escape(note)}</li>" for note in notes)
        parts.append(f"<h2>Warnings</h2>\n<ul>{points}</ul>")
    return page(title, "\n".join(parts), STYLE, SORTING)


def _table(one: TextTable) -> str:
    caption = f'\n<p class="soft"><small>{escape(one.caption)}</small></p>' if one.caption else ""
    shown = table(one.header, one.rows, one.strong, one.aside, "cards")
    return f"<h2>{escape(one.title)}</h2>\n{shown}{caption}"
