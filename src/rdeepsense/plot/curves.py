"""Two curves of a model on labelled rows: do its probabilities hold, and do they find errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import special

from rdeepsense import metrics
from rdeepsense.arrays import Floats, Integers
from rdeepsense.distributions import AnyDistribution, Categorical
from rdeepsense.metrics.scores import as_classes, risk_coverage
from rdeepsense.plot.figures import BLUE, GREY, LEGEND, VERMILION, drawn, framed, on, one_target
from rdeepsense.refusal import class_score

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LEVELS = (*(k / 20 for k in range(1, 20)), 0.98, 0.99)
BAND = 0.95  # of calibrated models lie inside, at each level by itself
BINS = 10
MOST_POINTS = 1_000  # of a curve
FEWEST = 0.1  # of the rows: the risk of fewer is mostly chance


def calibration(dist: AnyDistribution, y: npt.ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw observed against stated probability, with the band of a model that is right.

    Of numbers: the share of y inside the central interval of each level, and where 95 % of the
    shares of n independent rows lie, Binomial(n, level) / n. Of classes: in ten equal parts of the
    rows by the top class's probability, how often it is the true one, with the normal band of
    sqrt(sum p (1 - p)) / n. Returns the axes.
    """
    axes, truth = on(ax), one_target("calibration", dist, y)
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=1.2, label="as stated")
    if dist.is_categorical:
        stated, share, spread = reliability(as_classes("calibration", dist), truth)
        low, high = stated - 1.96 * spread, stated + 1.96 * spread
        label = ("stated probability (%)", "right (%)")
    else:
        stated, share = metrics.calibration_curve(dist, truth, LEVELS)
        low, high = binomial_band(stated, truth.size)
        label = ("stated coverage (%)", "observed coverage (%)")
    axes.fill_between(100 * stated, 100 * np.clip(low, 0, 1), 100 * np.clip(high, 0, 1),
                      color=GREY, alpha=0.3, linewidth=0, label="95 % if calibrated")  # fmt: skip
    axes.plot(100 * stated, 100 * share, color=BLUE, marker="o", markersize=4.5, linewidth=1.8,
              label=f"this model, {truth.size:,} rows")  # fmt: skip
    axes.set_xlim(0, 100.5)
    axes.set_ylim(0, 101)
    axes.legend(loc="upper left", **LEGEND)
    return framed(axes, *label)


def risk(dist: AnyDistribution, y: npt.ArrayLike, ax: Axes | None = None, unit: str = "") -> Axes:
    """Draw the error of the rows kept as the least certain ones are refused.

    The error is the mean |y - mean|, of classes the share that is wrong; rows are refused by their
    std, of classes by 1 - the top class's probability. The dashed line refuses by the error itself,
    which no model can beat. Returns the axes.
    """
    axes, truth = on(ax), one_target("risk", dist, y)
    score, loss = uncertainty_and_loss(dist, truth)
    percent = 100.0 if dist.is_categorical else 1.0
    for by, colour, dash, label in (
        (score, BLUE, "-", "by stated uncertainty"),
        (loss, GREY, "--", "by the error itself"),
    ):
        kept, remains = risk_coverage(by, loss)
        enough = np.flatnonzero(kept >= min(FEWEST, kept.max()))
        enough = enough[drawn(len(enough), MOST_POINTS)]
        axes.plot(100 * (1 - kept[enough]), percent * remains[enough], color=colour, linestyle=dash,
                  linewidth=1.8, label=label)  # fmt: skip
    axes.axhline(percent * float(loss.mean()), color=VERMILION, linewidth=1, linestyle=":",
                 label="all rows")  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, 100 * (1 - FEWEST))
    axes.legend(loc="best", **LEGEND)
    what = "wrong of those kept (%)" if dist.is_categorical else "mean absolute error"
    return framed(axes, "rows refused (%)", f"{what} ({unit})" if unit else what)


def reliability(dist: Categorical, truth: Floats | Integers) -> tuple[Floats, Floats, Floats]:
    """Return stated probability, share right, and the spread of the latter, in parts of the rows.

    The parts are of equal numbers of rows, in the order of the top class's probability.
    """
    stated = dist.probs.max(axis=-1)
    right = (dist.mode == truth).astype(np.float64)
    order = np.argsort(stated, kind="stable")
    parts = np.array_split(order, min(BINS, len(order)))
    spread = [math.sqrt(float(np.sum(stated[p] * (1 - stated[p])))) / len(p) for p in parts]
    return (
        np.array([stated[part].mean() for part in parts]),
        np.array([right[part].mean() for part in parts]),
        np.array(spread),
    )


def binomial_band(levels: Floats, rows: int) -> tuple[Floats, Floats]:
    """Return where the share of `rows` independent rows lies with probability 0.95.

    The ends are quantiles of Binomial(rows, level) / rows: the least k with P(K <= k) >= q.
    """
    ends = []
    for q in ((1 - BAND) / 2, (1 + BAND) / 2):
        above = np.ceil(special.bdtrik(q, rows, levels))
        below = np.maximum(above - 1, 0)
        ends.append(np.where(special.bdtr(below, rows, levels) >= q, below, above) / rows)
    return ends[0], ends[1]


def uncertainty_and_loss(dist: AnyDistribution, truth: Floats | Integers) -> tuple[Floats, Floats]:
    """Return of each row what the model says of its error, and the error."""
    if dist.is_categorical:
        classes = as_classes("risk", dist)
        return class_score(classes.probs), (classes.mode != truth).astype(np.float64)
    return np.asarray(dist.std), np.abs(np.asarray(dist.mean) - truth)
