"""A picture of what a budget was spent on: NLL against flash and multiply-adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rdeepsense.errors import InputError, require
from rdeepsense.plot.figures import BLUE, GREY, INK, LARGE, NORMAL, SMALL, VERMILION
from rdeepsense.plot.literal import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = {"Dense": (BLUE, "o", "dense layers"), "Periodic": (VERMILION, "s", "embeddings")}
KIB = 1024
Tried = Sequence[Mapping[str, Any]]


class Budgeted(Protocol):
    """A fitted estimator that keeps what it tried within a budget, as plain data."""

    @property
    def selection_(self) -> Mapping[str, Any] | None: ...

    @property
    def training_(self) -> Mapping[str, Any]: ...


def plot_front(model: Budgeted) -> Figure:
    """Draw the networks that were tried within a budget: NLL against flash and multiply-adds.

    Filled points are on the Pareto front (`selection_["front"]`), the steps are the best that each
    size can do, the ring marks what was chosen, and a dashed line the limit.
    """
    selection = getattr(model, "selection_", None) or {}
    if "front" not in selection:
        raise InputError(
            'no budget was spent: plot_front needs an estimator fitted with hidden="auto" and '
            "budget=rdeepsense.Budget(...)"
        )
    tried: Tried = [one for one in selection["architectures"] if one["nll"] is not None]
    limits = model.training_["budget"]
    figure: Figure = require("matplotlib.figure", "report").Figure(
        figsize=(8.6, 4.1), layout="constrained"
    )
    stored = f", as {limits['dtype']}" if "dtype" in limits else ""
    figure.suptitle(
        f"{len(tried)} networks within the budget{stored} ({selection['how']})",
        fontsize=LARGE,
        color=INK,
    )
    flash, sums = figure.subplots(1, 2, sharey=True)
    on_front = [one in selection["front"] for one in tried]
    _draw(flash, tried, on_front, "flash", KIB, limits.get("flash"))
    _draw(sums, tried, on_front, "multiply_adds", 1, limits.get("multiply_adds"))
    flash.set_xlabel("flash, kB", fontsize=SMALL)
    _binary_ticks(flash)
    sums.set_xlabel("multiply-adds of a prediction", fontsize=SMALL)
    flash.set_title("NLL after a first look", fontsize=NORMAL, color=INK, loc="left")
    handles, labels = flash.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=SMALL,
                  frameon=False)  # fmt: skip
    return literal(figure)


def _draw(
    axes: Axes, tried: Tried, on_front: list[bool], key: str, unit: int, limit: object
) -> None:
    found = [(one["need"][key] / unit, one["nll"]) for one in tried]
    steps = sorted(point for point in found if not any(_below(other, point) for other in found))
    axes.step(*zip(*steps, strict=True), where="post", color=GREY, linewidth=1.2, zorder=1)
    for name, (colour, marker, label) in MARKERS.items():
        own = [k for k, one in enumerate(tried) if one["name"] == name]
        for ks, face in (
            ([k for k in own if on_front[k]], colour),
            ([k for k in own if not on_front[k]], "none"),
        ):
            if ks:
                told = label if face == colour else f"{label}, beaten"
                axes.plot(*zip(*(found[k] for k in ks), strict=True), marker, color=colour,
                          markerfacecolor=face, markersize=6, label=told)  # fmt: skip
    for point in (found[k] for k, one in enumerate(tried) if one["chosen"]):
        axes.plot(*point, "o", markersize=14, markerfacecolor="none", markeredgecolor=INK,
                  markeredgewidth=1.6)  # fmt: skip
    if isinstance(limit, int):
        axes.axvline(limit / unit, color=INK, linestyle="--", linewidth=1)
    axes.set_xscale("log")
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)


def _binary_ticks(axes: Axes) -> None:
    """Mark powers of two, as sizes of memories are."""
    least, most = axes.get_xlim()
    powers = [2**k for k in range(-10, 21) if least <= 2**k <= most]
    axes.set_xticks(powers, [f"{power:g}" for power in powers])
    axes.minorticks_off()


def _below(other: tuple[float, float], own: tuple[float, float]) -> bool:
    return other != own and other[0] <= own[0] and other[1] <= own[1]
