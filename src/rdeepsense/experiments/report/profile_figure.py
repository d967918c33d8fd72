"""The forms of a model side by side: time, weights and energy of one prediction."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rdeepsense.errors import require
from rdeepsense.experiments.report.cell_text import short
from rdeepsense.experiments.report.pictures import plain_log
from rdeepsense.plot.figures import BLUE, GREY, INK, LARGE, NORMAL, SMALL, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_profile(found: Mapping[str, Any]) -> Figure:  # Any: as its JSON, of all kinds of values
    """Draw bars of what `rdeepsense profile` found; forms that could not run are left out."""
    forms = [form for form in found["forms"] if form["available"]]
    figure: Figure = require("matplotlib.figure", "report").Figure(
        figsize=(11.5, 1.9 + 0.3 * len(forms)), layout="constrained"
    )
    figure.suptitle(f"One prediction, {found['machine']}", fontsize=LARGE, color=INK)
    left, middle, right = figure.subplots(1, 3, sharey=True)
    _bars(left, forms, "microseconds", 1.0, "median time (µs, log scale); tick: 99th percentile")
    for place, form in enumerate(forms):
        left.plot(form["p99_microseconds"], place, marker="|", color=INK, markersize=9)
    _bars(middle, forms, "weight_bytes", 1e-3, "weights (kB, log scale)")
    _bars(right, forms, "millijoules", 1.0, f"energy (mJ, log scale), {found['energy']}")
    left.set_yticks(range(len(forms)), [form["name"] for form in forms], fontsize=SMALL)
    left.set_ylim(len(forms) - 0.4, -0.6)
    return literal(figure)


def _bars(axes: Axes, forms: list[Any], key: str, factor: float, label: str) -> None:
    values = [factor * form[key] for form in forms]
    low = 0.4 * min(values)
    axes.set_xscale("log")
    axes.set_xlim(low, 4 * max(values))
    for place, (form, value) in enumerate(zip(forms, values, strict=True)):
        own = form["name"].startswith(("c-", "ctypes"))
        axes.barh(place, value - low, left=low, height=0.66, color=BLUE if own else GREY)
        end = max(value, form["p99_microseconds"] if key == "microseconds" else 0.0)
        axes.annotate(short(value), (end, place), xytext=(6, 0), va="center", fontsize=SMALL,
                      color=INK, textcoords="offset points")  # fmt: skip
    plain_log(axes.xaxis)
    axes.set_xlabel(fill(label, 42), fontsize=NORMAL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
