"""A picture of a selection: every candidate's figures on rows it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Protocol

from rdeepsense.errors import InputError, require
from rdeepsense.plot.figures import BLUE, GREY, INK, LARGE, NORMAL, SMALL, VERMILION
from rdeepsense.plot.literal import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    _draw(axes[0], trials, chosen, "nll", "NLL after calibration")
    if areas:
        _draw(axes[1], trials, chosen, "deviation_area", "deviation area after calibration")
    if len(lengths) > 1:
        _draw_lengths(axes[-1], lengths)
    handles, labels = axes[0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=SMALL,
                      frameon=False)  # fmt: skip
    return literal(figure)


def _draw(axes: Axes, trials: Trials, chosen: Mapping[str, Any], key: str, title: str) -> None:
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
