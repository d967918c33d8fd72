"""Figures that compare predicted with true or observed uncertainty.

Every function returns a new matplotlib Figure or draws on given axes; nothing global is touched.
Colours are Okabe and Ito's, which remain distinct for colour-blind readers and in grey.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rdeepsense import metrics
from rdeepsense.arrays import Floats
from rdeepsense.distributions import Gaussian, RegressionDistribution
from rdeepsense.errors import require
from rdeepsense.plot.literal import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
