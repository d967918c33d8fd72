"""Axes to draw on: those given, or new ones; their light frame; which rows are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError, require
from rdeepsense.metrics.checks import truth_of
from rdeepsense.plot.figures import NORMAL, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
