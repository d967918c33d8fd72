"""Figures of a report and its table of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rdeepsense import metrics, plot
from rdeepsense.distributions import Categorical
from rdeepsense.errors import require
from rdeepsense.metrics.scores import risk_coverage
from rdeepsense.pages.html import TextTable
from rdeepsense.pages.pictures import Panel, Picture, finish, legend_below, rows
from rdeepsense.plot.figures import BLUE, GREY, INK, SMALL, VERMILION
from rdeepsense.reporting.subject import Share, Subject, find_drift, row_values, standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------------------------------------------------------------------------------------------------
# Pictures of a report: predictions and actual values, and errors
# --------------------------------------------------------------------------------------------------

SIZE = (4.8, 4.1)
DEEPEST = 0.55  # opacity, over which letters can still be read in either scheme
MOST_CLASSES = 12
MOST_COUNTED = 8  # classes of which a cell has room for two lines


def calibration(subject: Subject, prefix: str) -> Picture:
    """Draw stated against observed probabilities with the band of an ideal model."""
    caption = (
        "On the diagonal the model is perfectly calibrated; the gray band contains 95 % of "
        "perfectly calibrated models with so many independent rows. Below it the model is "
        "overconfident, above it underconfident."
    )
    held, stated = 100 * subject.held.mean(), 100 * subject.stated.mean()
    what = "are right" if subject.is_classes else "of the values lie in the 90 % intervals"
    return Picture(
        f"{prefix}-calibration",
        f"{subject.name}: is it calibrated?",
        caption,
        "",
        (Panel("", partial(_calibration, subject=subject), SIZE),),
        says=f"{held:.1f} % {what}, {stated:.1f} % is stated.",
    )


def risk(subject: Subject, prefix: str) -> Picture:
    """Draw the error that remains as the least certain rows are refused."""
    kept, remains = risk_coverage(subject.uncertainty, subject.loss)
    half = float(np.interp(0.5, kept, remains))
    all_rows = float(subject.loss.mean())
    percent, unit = (100.0, " %") if subject.is_classes else (1.0, f" {subject.unit}".rstrip())
    return Picture(
        f"{prefix}-risk",
        f"{subject.name}: is it less certain where it is wrong?",
        "The error of the rows that are kept as those it is least sure of are refused. A curve "
        "that falls means that its uncertainty knows where the errors are; the dashed one is the "
        "best that could be.",
        "",
        (Panel("", partial(_risk, subject=subject), SIZE),),
        says=f"Error {percent * all_rows:.3g}{unit} over all rows, {percent * half:.3g}{unit} when "
        "half of them are refused.",
    )


def residuals(subject: Subject, prefix: str) -> Picture:
    """Draw what is left of y; of classes, which are taken for which."""
    if isinstance(subject.dist, Categorical):
        return Picture(
            f"{prefix}-confusion",
            f"{subject.name}: confusion matrix",
            "Of the rows of each actual class, the percentage with each predicted class; below it "
            "the number of rows. The diagonal is right.",
            "",
            (Panel("", partial(_confusion, subject=subject), (5.4, 4.6)),),
            says=f"{100 * subject.held.mean():.1f} % of all rows are on the diagonal.",
        )
    bias = float(np.mean(subject.truth - subject.dist.mean))
    return Picture(
        f"{prefix}-residuals",
        f"{subject.name}: residuals",
        "Truth less prediction. The line is their mean in ten parts of the rows: away from 0 it is "
        "a bias. The dashed lines are what the model says 90 % of them are between, on average.",
        "",
        (Panel("", partial(_residuals, subject=subject), SIZE),),
        says=f"Mean residual {bias:.3g} {subject.unit}".rstrip() + ".",
    )


def bands(subject: Subject, prefix: str) -> Picture:
    """Draw some rows on their intervals."""
    area = metrics.deviation_area(subject.dist, subject.truth)
    return Picture(
        f"{prefix}-bands",
        f"{subject.name}: rows on their intervals",
        "Up to 300 rows in the order of their predicted mean; about one in ten should be outside.",
        "",
        (Panel("", partial(_bands, subject=subject), SIZE),),
        says=f"Deviation area {area:.3f}.",
    )


def parts(
    subject: Subject, shares: Sequence[Share], prefix: str, name: str, by: str, caption: str
) -> Picture:
    """Draw the share that held in each part of the rows, with the band of calibrated models."""
    off = [one for one in shares if one.is_off]
    what = "right" if subject.is_classes else "inside the 90 % interval"
    worst = max(shares, key=lambda one: abs(one.share - one.stated))
    return Picture(
        f"{prefix}-{name}",
        f"{subject.name}: {'accuracy' if subject.is_classes else 'coverage'} by {by}",
        caption,
        "",
        (Panel("", partial(_parts, shares=shares, label=f"rows {what} (%)"),
               (4.8, 1.3 + 0.27 * len(shares))),),
        says=f"{len(off)} of {len(shares)} parts are outside of the band of a calibrated model; "
        f"furthest is {worst.label} with {100 * worst.share:.0f} %.",
    )  # fmt: skip


def over_time(subject: Subject, shares: Sequence[Share], prefix: str) -> Picture:
    """Draw the share that held in each block of time, and where it changed."""
    drift = find_drift(subject)
    changed = drift is not None and drift.drifts
    what = "right" if subject.is_classes else "inside the 90 % interval"
    told = "A change was found." if changed else "No change was found."
    return Picture(
        f"{prefix}-time",
        f"{subject.name}: {'accuracy' if subject.is_classes else 'coverage'} by {subject.timed_by}",
        "Blocks with equal numbers of rows, and the band of a perfectly calibrated model. A step "
        "or a trend means that the model no longer fits the data"
        + ("; the dotted line is where it began." if changed else "."),
        "",
        (Panel("", partial(_over_time, subject=subject, shares=shares,
                           at=drift.row if changed and drift is not None else None,
                           label=f"rows {what} (%)"), SIZE),),
        says=f"From {100 * shares[0].share:.0f} % in the first to {100 * shares[-1].share:.0f} % "
        f"in the last of {len(shares)} blocks. {told}",
    )  # fmt: skip


def _calibration(axes: Axes, subject: Subject) -> None:
    plot.calibration(subject.dist, subject.y, axes)
    legend_below(axes)


def _risk(axes: Axes, subject: Subject) -> None:
    plot.risk(subject.dist, subject.y, axes, subject.unit)
    legend_below(axes)


def _residuals(axes: Axes, subject: Subject) -> None:
    plot.residuals(subject.dist, subject.y, axes, subject.unit)
    legend_below(axes)


def _bands(axes: Axes, subject: Subject) -> None:
    plot.bands(subject.dist, subject.y, ax=axes, label=subject.named)
    legend_below(axes)


def _parts(axes: Axes, shares: Sequence[Share], label: str) -> None:
    for place, one in enumerate(shares):
        colour = VERMILION if one.is_off else BLUE
        axes.plot([100 * one.low, 100 * one.high], [place, place], color=GREY, alpha=0.35,
                  linewidth=9, solid_capstyle="butt")  # fmt: skip
        axes.plot([100 * one.stated] * 2, [place - 0.32, place + 0.32], color=GREY, linewidth=1.4)
        axes.plot(100 * one.share, place, "s" if one.is_off else "o", color=colour, markersize=6.5)
    least = min(min(one.low, one.share) for one in shares)
    axes.set_xlim(100 * max(0, least - 0.06), 101.5)
    finish(axes, label, grid="x")
    rows(axes, [f"{one.label} [{one.rows:,}]" for one in shares])


def _over_time(
    axes: Axes, subject: Subject, shares: Sequence[Share], at: int | None, label: str
) -> None:
    assert subject.time is not None
    order = subject.order
    starts = np.cumsum([0, *(one.rows for one in shares)])
    middles = subject.time[order[(starts[:-1] + starts[1:]) // 2]]
    low, high, stated, share = (
        np.array([100 * getattr(one, key) for one in shares])
        for key in ("low", "high", "stated", "share")
    )
    axes.fill_between(middles, low, high, color=GREY, alpha=0.35, linewidth=0,
                      label="95 % if calibrated")  # fmt: skip
    axes.plot(middles, stated, color=GREY, linewidth=1.2, label="as stated")
    axes.plot(middles, share, color=BLUE, marker="o", markersize=4.5, linewidth=1.5,
              label="this model")  # fmt: skip
    if at is not None:
        axes.axvline(subject.time[order[at]], color=VERMILION, linestyle=":", linewidth=2)
    axes.set_ylim(top=101)
    finish(axes, subject.timed_by, label)
    if subject.time.dtype.kind == "M":
        dates = require("matplotlib.dates", "report")
        locator = dates.AutoDateLocator(maxticks=6)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    legend_below(axes)


def _confusion(axes: Axes, subject: Subject) -> None:
    dist = subject.dist
    assert isinstance(dist, Categorical)
    counts = np.zeros((dist.n_classes, dist.n_classes))
    np.add.at(counts, (np.asarray(subject.truth, np.int64), dist.mode), 1)
    common = np.sort(np.argsort(-counts.sum(1), kind="stable")[:MOST_CLASSES])
    totals = counts.sum(1)
    labels = [str(k) if dist.classes is None else str(dist.classes[k]) for k in common]
    rectangle = require("matplotlib.patches", "report").Rectangle
    for i, true in enumerate(common):
        for j, said in enumerate(common):
            share = counts[true, said] / totals[true] if totals[true] else 0.0
            colour = BLUE if i == j else VERMILION
            axes.add_patch(rectangle((j - 0.47, i - 0.45), 0.94, 0.9, facecolor=colour,
                                     linewidth=0, alpha=DEEPEST * share))  # fmt: skip
            if share:
                text = f"{100 * share:.0f}"
                if len(common) <= MOST_COUNTED:
                    text += f" %\n{counts[true, said]:,.0f}"
                axes.text(j, i, text, ha="center", va="center", fontsize=SMALL, color=INK)
    finish(axes, "predicted class", "actual class [rows]")
    axes.grid(False)
    rows(axes, [f"{name} [{totals[k]:,.0f}]" for name, k in zip(labels, common, strict=True)])
    axes.set_xticks(range(len(labels)), labels, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.55, len(labels) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.spines["bottom"].set_visible(False)


# --------------------------------------------------------------------------------------------------
# Metrics of one target, with standard errors and reference values
# --------------------------------------------------------------------------------------------------

NUMBERS = {
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "nll": "negative log-likelihood (nats)",
    "crps": "CRPS",
    "coverage_90": "coverage of 90 % intervals",
    "sharpness": "mean stated standard deviation",
    "deviation_area": "deviation area",
}
CLASSES = {
    "accuracy": "accuracy",
    "f1": "F1, mean over classes",
    "nll": "negative log-likelihood (nats)",
    "brier": "Brier score (0 to 2)",
    "ece": "expected calibration error",
}
IN_UNITS = ("mae", "rmse", "crps", "sharpness")
SHARES = ("coverage_90", "accuracy")


def figures_table(subject: Subject) -> TextTable:
    """Return a line for each figure."""
    found = metrics.evaluate(subject.dist, subject.y)
    rows = row_values(subject.dist, subject.y) | {"coverage_90": subject.held.astype(float)}
    ideal = {"coverage_90": "90 %", "accuracy": f"{100 * subject.stated.mean():.1f} % is stated"}
    if not subject.is_classes:
        ideal["deviation_area"] = f"{found['deviation_floor']:.4f}"
    lines = []
    for key, name in (CLASSES if subject.is_classes else NUMBERS).items():
        unit = f" ({subject.unit})" if key in IN_UNITS and subject.unit else ""
        error = standard_error(rows[key], subject.groups) if key in rows else None
        lines.append(
            [f"{name}{unit}", with_error(found[key], error, key in SHARES), ideal.get(key, "")]
        )
    between = f", clustered by {subject.grouped_by}" if subject.groups is not None else ""
    return TextTable(
        f"{subject.name}: figures on {len(subject.truth):,} rows",
        f"± one standard error{between}.",
        ["figure", "value", "ideal"],
        lines,
    )


def with_error(value: float, error: float | None, share: bool = False) -> str:
    """Return a value to as many decimals as its error has with two digits."""
    if not math.isfinite(value):
        return "not finite"
    factor, sign = (100.0, " %") if share else (1.0, "")
    value = factor * value
    if not error or not math.isfinite(error):
        return f"{value:.4g}{sign}".replace("-", "−")
    error = factor * error
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}{sign}".replace("-", "−")
