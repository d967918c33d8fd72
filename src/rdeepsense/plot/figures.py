"""Figures of predictive distributions for notebooks: `rds.plot`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rdeepsense import metrics
from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import AnyDistribution, Gaussian, RegressionDistribution
from rdeepsense.distributions.base import finite
from rdeepsense.errors import InputError, require
from rdeepsense.metrics.scores import as_regression, truth_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# Literal texts in figures: dollar signs are no formula
# --------------------------------------------------------------------------------------------------


def literal(figure: Figure) -> Figure:
    """Show every text of a finished figure letter by letter; returns the figure.

    Names come from files and tables, and matplotlib reads what stands between two dollar signs as
    mathematics, which most names are not. The labels of ticks that matplotlib places itself are its
    own, powers of ten among them.
    """
    fixed = require("matplotlib.ticker", "report").FixedLocator
    own = {
        id(label)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        if not isinstance(axis.get_major_locator(), fixed)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
    }
    for text in figure.findobj(require("matplotlib.text", "report").Text):
        if id(text) not in own:
            text.set_parse_math(False)
    return figure


# --------------------------------------------------------------------------------------------------
# Figures of predicted against actual values and uncertainty
#
# Every function returns a new matplotlib Figure or draws on given axes; nothing global is touched.
# Colours are Okabe and Ito's, which remain distinct for colour-blind readers and in grey.
# --------------------------------------------------------------------------------------------------

BLUE, VERMILION, GREY, INK = "#0072B2", "#D55E00", "#7F7F7F", "#222222"
COVERAGE = 0.9
SMALL, NORMAL, LARGE = 9.5, 10.5, 12.5  # points; small is still legible at 900 pixels


@dataclass(frozen=True)
class Slice:
    """The truth, the prediction and draws of the truth along one input, all others fixed."""

    x: Floats
    truth: Gaussian
    predicted: RegressionDistribution
    drawn: Floats
    label: str


def known_truth(
    along: Slice, truth: Gaussian, predicted: RegressionDistribution, y: Floats
) -> Figure:
    """Draw three panels on a simulated task: a slice, predicted against true std, calibration."""
    figure: Figure = require("matplotlib.figure", "report").Figure(
        figsize=(10.5, 3.65), layout="constrained"
    )
    figure.suptitle(
        "Predicted against true uncertainty: simulated sensor, one forward pass",
        fontsize=LARGE,
        color=INK,
    )
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.4, 1, 1))
    draw_slice(left, along)
    draw_spread(middle, truth.std, predicted.std)
    draw_calibration(right, predicted, y)
    return literal(figure)


def draw_slice(axes: Axes, along: Slice) -> None:
    """Draw true and predicted mean and 90 % band along one input."""
    band = f"{round(100 * COVERAGE)} % band"
    low, high = along.predicted.interval(COVERAGE)
    axes.fill_between(
        along.x, low, high, color=BLUE, alpha=0.22, linewidth=0, label=f"predicted {band}"
    )
    axes.scatter(along.x, along.drawn, s=6, color=GREY, linewidths=0, label="simulated y")
    axes.plot(along.x, along.predicted.mean, color=BLUE, linewidth=2, label="predicted mean")
    low, high = along.truth.interval(COVERAGE)
    axes.plot(
        along.x, along.truth.mean, color=INK, linestyle="--", linewidth=1.5, label="true mean"
    )
    axes.plot(along.x, low, color=INK, linestyle=":", linewidth=1.3, label=f"true {band}")
    axes.plot(along.x, high, color=INK, linestyle=":", linewidth=1.3)
    _finish(axes, "Along one input", along.label, "y (arbitrary units, a.u.)")
    axes.set_xlim(along.x[0], along.x[-1])
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + 0.4 * (top - bottom))  # room for the legend
    axes.legend(loc="upper left", ncols=2, **_LEGEND)


def draw_spread(axes: Axes, true_std: Floats, predicted_std: Floats) -> None:
    """Draw predicted against true standard deviation: hexagons of rows, and the diagonal."""
    low = 0.85 * min(true_std.min(), predicted_std.min())
    high = 1.15 * max(true_std.max(), predicted_std.max())
    error = float(np.sqrt(np.mean(np.log(predicted_std / true_std) ** 2)))
    hexagons: Any = {"xscale": "log", "yscale": "log", "bins": "log", "mincnt": 1}
    axes.hexbin(true_std, predicted_std, gridsize=40, cmap="Blues", linewidths=0.1, **hexagons)
    ticker = require("matplotlib.ticker", "report")
    for axis in (axes.xaxis, axes.yaxis):  # after hexbin, which puts its own in place
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.set_minor_formatter(ticker.NullFormatter())
    axes.plot([low, high], [low, high], color=INK, linestyle="--", linewidth=1.3, label="perfect")
    _finish(axes, "Standard deviation", "true std of y (a.u.)", "predicted std of y (a.u.)")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_box_aspect(1)
    axes.legend(loc="upper left", title=f"RMSE of log std {error:.3f}", **_LEGEND)


def draw_calibration(axes: Axes, predicted: RegressionDistribution, y: Floats) -> None:
    """Draw the share of y inside the central intervals against the share there should be."""
    levels, observed = metrics.calibration_curve(predicted, y)
    area, floor = metrics.deviation_area(predicted, y), metrics.deviation_floor(y.size)
    ends = np.r_[0.0, levels, 1.0]
    axes.fill_between(ends, ends, np.r_[0.0, observed, 1.0], color=VERMILION, alpha=0.3)
    axes.plot(levels, observed, color=VERMILION, linewidth=1.5, marker="o", markersize=4.5,
              label="predicted")  # fmt: skip
    axes.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1.3, label="perfect")
    _finish(axes, f"Calibration, n = {y.size:,}", "nominal coverage", "observed coverage")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_box_aspect(1)
    axes.legend(
        loc="upper left", title=f"deviation area {area:.4f}\nfloor at this n {floor:.4f}", **_LEGEND
    )


_LEGEND: dict[str, Any] = {
    "fontsize": SMALL,
    "title_fontsize": SMALL,
    "alignment": "left",
    "frameon": False,
    "handlelength": 1.6,
    "borderaxespad": 0.2,
    "labelspacing": 0.3,
    "columnspacing": 1.2,
}


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=NORMAL, color=INK, loc="left")
    axes.set_xlabel(x, fontsize=NORMAL)
    axes.set_ylabel(y, fontsize=NORMAL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(color="#E6E6E6", linewidth=0.6)


# --------------------------------------------------------------------------------------------------
# Axes, frames and the choice of rows
# --------------------------------------------------------------------------------------------------

GRID = "#E6E6E6"
MOST_POINTS = 1_500  # more than these hide each other, and make a page of SVG heavy
LEGEND: dict[str, Any] = {"fontsize": SMALL, "frameon": False}


def on(ax: Axes | None) -> Axes:
    """Return the axes given, or those of a new figure of pyplot, which a notebook shows."""
    if ax is not None:
        return ax
    axes: Axes = require("matplotlib.pyplot", "report").subplots(layout="constrained")[1]
    return axes


def framed(axes: Axes, x: str, y: str) -> Axes:
    """Set the labels and the light frame that all of these plots have."""
    axes.set_xlabel(x, fontsize=NORMAL)
    axes.set_ylabel(y, fontsize=NORMAL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(color=GRID, linewidth=0.6)
    return axes


def one_target(name: str, dist: AnyDistribution, y: npt.ArrayLike) -> Floats | Integers:
    """Return the truth, checked; refuse several targets at once."""
    if len(dist.shape) != 1:
        raise InputError(
            f"{name} draws one target; dist has shape {dist.shape}: give dist[:, k] and y[:, k]"
        )
    return truth_of(dist, y)


def drawn(rows: int, most: int = MOST_POINTS) -> Integers:
    """Choose the rows to draw as points: all, or so many of them at equal distances."""
    if rows <= most:
        return np.arange(rows)
    return np.linspace(0, rows - 1, most).round().astype(np.int64)


# --------------------------------------------------------------------------------------------------
# Rows of a regression: inside and outside their intervals
# --------------------------------------------------------------------------------------------------


def bands(
    dist: AnyDistribution,
    y: npt.ArrayLike,
    x: npt.ArrayLike | None = None,
    ax: Axes | None = None,
    coverage: float = 0.9,
    label: str = "",
) -> Axes:
    """Draw y on the predicted interval, row after row in the order of the mean, or of `x`.

    Points outside are marked; about 1 - coverage of them should be. At most 300 rows are drawn, at
    equal distances. Returns the axes.
    """
    axes, truth = on(ax), one_target("bands", dist, y)
    as_regression("bands", dist)
    along = np.asarray(dist.mean) if x is None else _along(x, truth.size)
    order = np.argsort(along, kind="stable")
    order = order[drawn(len(order), 300)]
    low, high = (np.asarray(end)[order] for end in dist.interval(coverage))
    mean, y_own = np.asarray(dist.mean)[order], truth[order]
    place = np.arange(len(order)) if x is None else along[order]
    axes.fill_between(place, low, high, color=BLUE, alpha=0.25, linewidth=0,
                      label=f"{100 * coverage:g} % interval")  # fmt: skip
    axes.plot(place, mean, color=BLUE, linewidth=1.4, label="mean")
    inside = (low <= y_own) & (y_own <= high)
    for chosen, colour, told in ((inside, INK, "truth"), (~inside, VERMILION, "truth, outside")):
        axes.plot(place[chosen], y_own[chosen], ".", color=colour, markersize=4, label=told)
    axes.legend(loc="best", **LEGEND)
    return framed(axes, "rows, by predicted mean" if x is None else "x", label or "y")


def residuals(
    dist: AnyDistribution,
    y: npt.ArrayLike,
    ax: Axes | None = None,
    unit: str = "",
) -> Axes:
    """Draw y - mean against the mean, with the interval that 90 % of them should be in.

    The line is the mean of the residuals in ten parts of the rows by predicted mean: away from 0 it
    is a bias. Returns the axes.
    """
    axes, truth = on(ax), one_target("residuals", dist, y)
    as_regression("residuals", dist)
    mean = np.asarray(dist.mean)
    miss = truth - mean
    order = np.argsort(mean, kind="stable")
    low, high = (np.asarray(end) - mean for end in dist.interval(0.9))
    some = order[drawn(len(order))]
    axes.plot(mean[some], miss[some], ".", color=BLUE, markersize=3, alpha=0.55)
    parts = np.array_split(order, min(10, len(order)))
    centre = np.array([mean[part].mean() for part in parts])
    for end, label in ((low, "90 % should be between"), (high, None)):
        axes.plot(centre, [end[part].mean() for part in parts], color=GREY, linestyle="--",
                  linewidth=1.2, label=label)  # fmt: skip
    axes.plot(centre, [miss[part].mean() for part in parts], color=VERMILION, marker="o",
              markersize=4, linewidth=1.5, label="mean")  # fmt: skip
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.legend(loc="best", **LEGEND)
    of = f" ({unit})" if unit else ""
    return framed(axes, f"predicted mean{of}", f"truth − mean{of}")


def _along(x: npt.ArrayLike, rows: int) -> Floats:
    values = finite("x", x)
    if values.shape != (rows,):
        raise InputError(f"x must have one number for each of {rows} rows; got {values.shape}")
    return values
