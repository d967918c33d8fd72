"""Figures of the architecture search: the Pareto front and the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Protocol

from rdeepsense.errors import InputError, require
from rdeepsense.plot.figures import BLUE, GREY, INK, LARGE, NORMAL, SMALL, VERMILION, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# NLL of candidates against flash and multiply-adds
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Scores of all candidates of a search
# --------------------------------------------------------------------------------------------------

GREEN, PURPLE = "#009E73", "#CC79A7"
STYLES = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."), (PURPLE, "D", ":"))
NAMES = {"drop_prob": "drop probability", "alpha": "alpha", "likelihood": "head"}
Trials = Sequence[Mapping[str, Any]]


class Selected(Protocol):
    """A fitted estimator that keeps what it chose among, as plain data."""

    @property
    def selection_(self) -> Mapping[str, Any] | None: ...


def plot_selection(model: Selected) -> Figure:
    """Draw what a fitted estimator chose among (`selection_`).

    The networks by how far they are behind the chosen one on a few steps, with the standard error
    of each difference; NLL and deviation area of the grid, a line for each head and alpha along the
    drop probabilities (along alpha where that has more values); other lengths of training. The ring
    marks what was chosen.
    """
    selection = getattr(model, "selection_", None)
    if not selection:
        raise InputError(
            "nothing was chosen: plot_selection needs an estimator fitted with alpha, drop_prob or "
            'likelihood "auto" (or alpha "paper")'
        )
    trials: Trials = selection["trials"]
    areas = trials[0]["deviation_area"] is not None
    lengths = selection.get("lengths", [])
    networks = selection.get("architectures") or []
    panels = (len(networks) > 1) + 1 + areas + (len(lengths) > 1)
    figure: Figure = require("matplotlib.figure", "report").Figure(
        figsize=(1.5 + 3.4 * panels, 3.7), layout="constrained"
    )
    figure.suptitle(
        f"{len(trials)} candidates ({selection['how']}), chosen by "
        f"{'NLL' if selection['by'] == 'nll' else 'deviation area'}",
        fontsize=LARGE,
        color=INK,
    )
    axes = list(figure.subplots(1, panels, squeeze=False)[0])
    if len(networks) > 1:
        _draw_networks(axes.pop(0), networks)
    chosen = trials[selection["chosen"]]
    _draw_selection(axes[0], trials, chosen, "nll", "NLL after calibration")
    if areas:
        _draw_selection(
            axes[1], trials, chosen, "deviation_area", "deviation area after calibration"
        )
    if len(lengths) > 1:
        _draw_lengths(axes[-1], lengths)
    handles, labels = axes[0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=SMALL,
                      frameon=False)  # fmt: skip
    return literal(figure)


def _draw_selection(
    axes: Axes, trials: Trials, chosen: Mapping[str, Any], key: str, title: str
) -> None:
    along = max(NAMES, key=lambda name: len({str(trial[name]) for trial in trials}))
    values = sorted({trial[along] for trial in trials}, key=lambda v: (isinstance(v, str), v))
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for trial in trials:
        others = [name for name in NAMES if name != along and name != "drop_prob"]
        label = ", ".join(_words(name, trial[name]) for name in reversed(others))
        lines.setdefault(label, []).append(trial)
    for (label, own), (colour, marker, style) in zip(lines.items(), cycle(STYLES), strict=False):
        axes.plot([values.index(t[along]) for t in own], [t[key] for t in own], style,
                  color=colour, marker=marker, markersize=5, lw=1.4, label=label)  # fmt: skip
    axes.plot(values.index(chosen[along]), chosen[key], "o", markersize=13, markerfacecolor="none",
              markeredgecolor=INK, markeredgewidth=1.6)  # fmt: skip
    axes.set_xticks(range(len(values)), [_short(value) for value in values])
    axes.set_xlabel(NAMES[along], fontsize=SMALL)
    _finish(axes, title)


def _draw_networks(axes: Axes, networks: Trials) -> None:
    for place, tried in enumerate(networks):
        behind = tried["behind"] or {"difference": 0.0, "standard_error": 0.0}
        axes.errorbar(behind["difference"], place, xerr=behind["standard_error"], fmt="o",
                      color=BLUE, markersize=5, capsize=3, lw=1.4)  # fmt: skip
        if tried["chosen"]:
            axes.plot(behind["difference"], place, "o", markersize=13, markerfacecolor="none",
                      markeredgecolor=INK, markeredgewidth=1.6)  # fmt: skip
    axes.axvline(0, color=GREY, lw=0.8, zorder=0)
    axes.set_yticks(range(len(networks)), [_network(tried) for tried in networks])
    axes.set_ylim(len(networks) - 0.5, -0.5)
    axes.set_xlabel("nats behind the chosen one", fontsize=SMALL)
    _finish(axes, "networks, on a few steps")


def _network(tried: Mapping[str, Any]) -> str:
    """Return a short name for a network; of periodic embeddings the spread."""
    arguments = tried["arguments"]
    if tried["name"] not in ("Dense", "Periodic"):
        return f"{tried['name']}\n{tried['parameters']:,} weights"
    widths = "-".join(map(str, arguments["hidden"]))
    return widths if tried["name"] == "Dense" else f"periodic {arguments['std']:g}\n{widths}"


def _draw_lengths(axes: Axes, lengths: Sequence[Mapping[str, float]]) -> None:
    axes.plot([str(length["steps"]) for length in lengths], [length["nll"] for length in lengths],
              "-", color=GREY, marker="o", markersize=5, linewidth=1.4)  # fmt: skip
    axes.set_xlabel("steps", fontsize=SMALL)
    _finish(axes, "NLL of the winner, trained longer")


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=NORMAL, color=INK, loc="left")
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)


def _words(name: str, value: float | str) -> str:
    return f"alpha {value:g}" if name == "alpha" else str(value)


def _short(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, float | int) else str(value)
