"""Rows of a regression as points: inside their predicted intervals, or by how far they miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats
from rdeepsense.distributions import AnyDistribution
from rdeepsense.distributions.checks import finite
from rdeepsense.errors import InputError
from rdeepsense.metrics.checks import as_regression
from rdeepsense.plot.figures import BLUE, GREY, INK, VERMILION
from rdeepsense.plot.frame import LEGEND, drawn, framed, on, one_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
