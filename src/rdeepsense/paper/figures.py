"""The paper's figures 1 to 9, and figures that it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from rdeepsense.errors import require
from rdeepsense.pages.html import NONE, TextTable, number, percent, short
from rdeepsense.pages.pictures import (
    PAPER,
    RECOMMENDED,
    Panel,
    Picture,
    finish,
    legend_below,
    plain_log,
    representatives,
    row_height,
    rows,
    style,
)
from rdeepsense.paper.fits import HEALTHY, TESTED
from rdeepsense.paper.scores import (
    AlphaPoint,
    CalibrationCurve,
    EnergySource,
    ExampleCase,
    Examples,
    Faults,
    RiskCurve,
    TaskResults,
)
from rdeepsense.plot.figures import BLUE, GREY, INK, SMALL, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------------------------------------------------------------------------------------------------
# The alpha study (figure 9 of the paper)
# --------------------------------------------------------------------------------------------------


def alpha_study(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw two panels, one above the other; None where no study was made."""
    study = sorted(task.alpha_study, key=lambda point: point.alpha)
    shown = [("nll", 1.0, "NLL", "NLL, full (nats)", BLUE, "o")]
    if task.is_classification:
        shown.append(("mefp", -1.0, "Negative MEFP", "negative MEFP (nats)", VERMILION, "s"))
    else:
        shown.append(("deviation_area", 1.0, "Deviation area", "deviation area", VERMILION, "s"))
    panels, chosen = [], _chosen(task)
    for key, sign, title, label, colour, marker in shown:
        if any(point.figures.get(key) is not None for point in study):
            draw = partial(_draw_alpha, study=study, key=key, sign=sign, label=label, colour=colour,
                           marker=marker, chosen=chosen,
                           floor=task.floor if key == "deviation_area" else None)  # fmt: skip
            panels.append(Panel(f"{title} over alpha", draw, (4.8, 3.0)))
    if not panels:
        return None
    return Picture(
        f"{name}-alpha",
        f"{name}: the choice of alpha",
        "alpha = 0 trains by the likelihood alone; towards 1 the error term takes over. Bars are "
        "± 2 standard errors, over test rows and trainings; the small dots are single trainings. "
        "All have the same test rows, so that differences between alphas are surer than the bars. "
        "Lower is better in both.",
        origin,
        tuple(panels),
        columns=1,
    )


def _chosen(task: TaskResults) -> list[float]:
    """Return the values of alpha that the trainings of the paper's method chose."""
    paper = task.methods.get(PAPER)
    chosen = None if paper is None or paper.chosen is None else paper.chosen.get("alpha")
    values = chosen if isinstance(chosen, list) else [chosen]
    return sorted({value for value in values if isinstance(value, float | int)})


def _draw_alpha(
    axes: Axes,
    study: Sequence[AlphaPoint],
    key: str,
    sign: float,
    label: str,
    colour: str,
    marker: str,
    chosen: Sequence[float],
    floor: float | None,
) -> None:
    found = [(p, value) for p in study if (value := p.figures.get(key)) is not None]
    errors = [2 * (point.figures.get(f"{key}_se") or 0.0) for point, _ in found]
    axes.errorbar([point.alpha for point, _ in found], [sign * value for _, value in found],
                  yerr=errors if any(errors) else None, color=colour, marker=marker, markersize=6,
                  capsize=3, linewidth=1.8)  # fmt: skip
    for point, _ in found:
        single = [sign * value for value in point.by_seed.get(key, ()) if value is not None]
        axes.plot([point.alpha] * len(single), single, ".", color=INK, markersize=5, zorder=3)
    if floor is not None:
        axes.axhline(floor, color=GREY, linestyle="--", linewidth=1.2, label=f"floor {floor:.3f}")
        axes.set_ylim(bottom=0)
    words = f"chosen on validation rows: {', '.join(f'{alpha:g}' for alpha in chosen)}"
    for place, alpha in enumerate(chosen):
        axes.axvline(alpha, color=GREY, linestyle=":", linewidth=1.6,
                     label="_" if place else words)  # fmt: skip
    finish(axes, "alpha", label)
    if floor is not None or chosen:
        legend_below(axes)


# --------------------------------------------------------------------------------------------------
# Calibration curves (figures 1 to 3 of the paper)
#
# Three panels: RDeepSense and the GP with MCDrop-k, with SSP-k and with RDeepSense-MCk.
# --------------------------------------------------------------------------------------------------

_COMMON = (RECOMMENDED, PAPER, "GP")
_PANELS = {"MCDrop-k": "MCDrop-", "SSP-k": "SSP-", "RDeepSense-MCk": "RDeepSense-"}
SIZE = (4.4, 5.3)


def calibration(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw the three panels; None for a task without a calibration curve, as one of classes."""
    curves = {
        method: cell.calibration
        for method, cell in task.methods.items()
        if cell.calibration is not None
    }
    if not curves:
        return None
    common = [method for method in _COMMON if method in curves]
    rivals = {
        title: [m for m in curves if m not in common and m.startswith(start)]
        for title, start in _PANELS.items()
    }
    shown = {title: names for title, names in rivals.items() if names} or {"": []}
    draw = partial(_draw_curves, curves=curves, common=common)
    lines = max(len(common) + 1, *(len(names) for names in shown.values()))
    panels = tuple(
        Panel(title, partial(draw, rivals=names, lines=lines), SIZE)
        for title, names in shown.items()
    )
    return Picture(
        f"{name}-calibration",
        f"{name}: calibration curves",
        "Share of test values inside the central interval against the share there should be. On "
        "the diagonal the intervals are right; below it they are too narrow (the uncertainty is "
        "underestimated), above it too wide. RDeepSense and the GP are in "
        "every panel.",
        origin,
        panels,
    )


def _draw_curves(
    axes: Axes,
    curves: Mapping[str, CalibrationCurve],
    common: Sequence[str],
    rivals: Sequence[str],
    lines: int,
) -> None:
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=1.2, label="perfect")
    for method in (*common, *rivals):
        own, curve = style(method), curves[method]
        main = own.k is None
        axes.plot(
            [0, *(100 * level for level in curve.levels)],
            [0, *(nan if share is None else 100 * share for share in curve.observed)],
            color=own.colour, linestyle=own.dash, linewidth=2.2 if main else 1.5,
            marker=own.k_marker, markersize=5.5 if main else 4.5, markevery=slice(1, None, 2),
            label=method, zorder=3 if main else 2,
        )  # fmt: skip
    finish(axes, "nominal coverage (%)", "observed coverage (%)")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 101)
    _legend(axes, len(common) + 1, lines)


def _legend(axes: Axes, left: int, lines: int) -> None:
    """Put what all panels share on the left, its rivals on the right, at one height in all."""
    handles, labels = axes.get_legend_handles_labels()
    blank = axes.plot([], [], " ")[0]
    pairs = list(zip(handles, labels, strict=True))
    parts = (pairs[:left], pairs[left:])
    entries = [entry for part in parts for entry in [*part, *[(blank, "")] * (lines - len(part))]]
    drawn, said = zip(*entries, strict=True)
    legend_below(axes, drawn, said, fontsize=9, handlelength=2.3, columnspacing=0.8)


# --------------------------------------------------------------------------------------------------
# Time, energy and quality of a prediction (figures 4 to 8 of the paper)
# --------------------------------------------------------------------------------------------------

_WHERE = {"estimated": "for", "measured": "on"}
FAR = 100.0  # beyond this ratio of the longest bar to the shortest, the axis is logarithmic


def energy_label(task: TaskResults, device: EnergySource | None) -> str:
    """Return the label of the energy axis: how the figures came about and on what device."""
    known = {cell.cost.energy for cell in task.methods.values() if cell.cost is not None}
    how = " and ".join(f"{word} {_WHERE.get(word, 'on')}" for word in sorted(known))
    return f"energy (mJ), {how} {device.profile if device else 'this machine'}"


def cost(name: str, task: TaskResults, origin: str, device: EnergySource | None) -> Picture | None:
    """Draw bars of time and energy for each method; None where no cost was taken."""
    found = {m: own.cost for m, own in task.methods.items() if own.cost is not None}
    labels = {
        "microseconds": ("Inference time", "time of one prediction (µs)"),
        "millijoules": ("Energy", energy_label(task, device)),
    }
    panels = []
    for key, (title, label) in labels.items():
        values: dict[str, float] = {method: getattr(one, key) for method, one in found.items()}
        if values:
            draw = partial(_bars, values=values, label=label)
            panels.append(Panel(title, draw, (4.8, row_height(len(values)))))
    if not panels:
        return None
    return Picture(
        f"{name}-cost",
        f"{name}: time and energy of one prediction",
        "One row at a time. A method that samples k times or asks k networks pays for k passes. "
        + (device.how if device else ""),
        origin,
        tuple(panels),
        columns=2,
    )


def _bars(axes: Axes, values: Mapping[str, float], label: str) -> None:
    log = max(values.values()) > FAR * min(values.values()) > 0
    low = 0.5 * min(values.values()) if log else 0.0
    if log:
        axes.set_xscale("log")
    for place, (method, value) in enumerate(values.items()):
        axes.barh(place, value - low, left=low, height=0.66, color=style(method).colour)
        axes.annotate(short(value), (value, place), xytext=(4, 0), fontsize=SMALL, va="center",
                      textcoords="offset points")  # fmt: skip
    top = max(values.values())
    axes.set_xlim(low, top * (top / low) ** 0.16 if log else 1.16 * top)
    finish(axes, label + (", log scale" if log else ""), grid="x")
    rows(axes, list(values))
    if log:
        plain_log(axes.xaxis)
    else:
        axes.xaxis.set_major_locator(
            require("matplotlib.ticker", "report").MaxNLocator(5, steps=[1, 2, 5, 10])
        )
        axes.xaxis.set_major_formatter("{x:,g}")


def quality(
    name: str, task: TaskResults, origin: str, device: EnergySource | None
) -> Picture | None:
    """Draw deviation area (negative MEFP for classes) against energy: down and left is better."""
    classes = task.is_classification
    points: dict[str, list[tuple[float, float, int | None]]] = {}
    for method, cell in task.methods.items():
        value = cell.figures.get("mefp" if classes else "deviation_area")
        energy = 0.0 if cell.cost is None else cell.cost.millijoules
        if value is not None and energy:
            own = style(method)
            points.setdefault(own.family, []).append((energy, -value if classes else value, own.k))
    if not points:
        return None
    what = "negative MEFP (nats)" if classes else "deviation area"
    draw = partial(_scatter, points=points, x=energy_label(task, device), y=what,
                   floor=None if classes else task.floor)  # fmt: skip
    return Picture(
        f"{name}-quality-energy",
        f"{name}: {what.split(' (')[0]} against energy",
        "Down and to the left is better. The number at a point is k, the passes of one "
        "prediction." + (" MEFP rewards uniform guesses: read it beside the accuracy." if classes
                         else " The dashed line is what a perfect model has on average."),
        origin,
        (Panel("", draw, (4.8, 4.9)),),
    )  # fmt: skip


def _scatter(
    axes: Axes,
    points: Mapping[str, list[tuple[float, float, int | None]]],
    x: str,
    y: str,
    floor: float | None,
) -> None:
    axes.set_xscale("log")
    for family, places in points.items():
        own = style(family)
        places = sorted(places)
        axes.plot([p[0] for p in places], [p[1] for p in places], color=own.colour,
                  marker=own.marker, markersize=11 if own.marker == "*" else 8, linewidth=1,
                  linestyle=":" if len(places) > 1 else "none", label=family, clip_on=False,
                  zorder=3)  # fmt: skip
        for energy, value, k in places:
            if k is not None:
                axes.annotate(str(k), (energy, value), xytext=(5, 5), textcoords="offset points",
                              fontsize=SMALL, color=INK)  # fmt: skip
    if floor is not None:
        axes.axhline(floor, color=GREY, linestyle="--", linewidth=1.2, label="floor")
        axes.set_ylim(bottom=0)
    finish(axes, x + ", log scale", y)
    axes.margins(0.08)
    plain_log(axes.xaxis)
    legend_below(axes)


# --------------------------------------------------------------------------------------------------
# Test cases with 90 % bands
# --------------------------------------------------------------------------------------------------

FEW = 60  # points that can be told apart as bars; more are a line


def examples(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw a panel for each case; None where the task has none to show."""
    given = task.examples
    if given is None or not given.cases:
        return None
    panels = tuple(
        Panel(case.title, partial(_draw_example, given=given, case=case), (4.8, 3.4))
        for case in given.cases
    )
    return Picture(
        f"{name}-examples",
        f"{name}: examples from the test rows",
        "RDeepSense, one pass. Nine of ten true values should be inside the 90 % band.",
        origin,
        panels,
        columns=2,
    )


def _draw_example(axes: Axes, given: Examples, case: ExampleCase) -> None:
    where, low, mean, high, truth = (
        np.array(values, dtype=float)
        for values in (given.x, case.low, case.mean, case.high, case.truth)
    )
    if where.size <= FEW:
        room = min(6.0, 200 / where.size)  # points across, so that neighbours stay apart
        axes.vlines(where, low, high, color=BLUE, alpha=0.4, linewidth=room, label="90 % band")
        axes.plot(where, mean, "_", color=BLUE, markersize=1.5 * room, markeredgewidth=2,
                  label="predicted")  # fmt: skip
        axes.plot(where, truth, "o", color=INK, markersize=4, label="true")
    else:
        axes.fill_between(where, low, high, color=BLUE, alpha=0.25, linewidth=0, label="90 % band")
        axes.plot(where, mean, color=BLUE, linewidth=2, label="predicted")
        axes.plot(where, truth, color=INK, linestyle="--", linewidth=1.4, label="true")
    finish(axes, given.x_label, given.y_label)
    axes.margins(x=0.02)
    legend_below(axes, ncols=3)


# --------------------------------------------------------------------------------------------------
# Sensor faults: which methods flag them, and what they predict
#
# Each method has a line for its own score; RDeepSense has two more, for its epistemic (Laplace)
# score and for the novelty of its inputs. Results of earlier versions hold no faults, and then
# there is nothing to show.
# --------------------------------------------------------------------------------------------------

Line = tuple[str, Faults, str]  # name, figures, suffix of a score
DEEPEST = 0.55  # opacity at 100 %, over which letters can still be read in either scheme
ABOUT = (
    "One sensor channel, drawn at random for each test row, is broken: stuck (it repeats one "
    "reading), saturated (it stays at its highest reading), dropped (it reads 0), drift (it moves "
    "away by up to 3 standard deviations), jitter (noise of one standard deviation is added) or "
    "swapped (with another axis or channel). The faults are simulated whatever the data is. A row "
    "is flagged where the score of a method is above what 5\u00a0% of the healthy validation rows "
    "exceed. The score is the predicted standard deviation (for classes, 1 − the probability of "
    "the predicted class); “laplace” is the epistemic score of the same model and the same single "
    "pass (for classes, mutual information); “novelty” is how unlike training rows the inputs are, "
    "whatever the model makes of them. One method of each family, that of the largest k."
)


def fault_map(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw the share of rows that is flagged: a line for each score, a column for each fault."""
    lines = _lines(task)
    if not lines:
        return None
    return Picture(
        f"{name}-faults",
        f"{name}: rows flagged when a sensor fails (%)",
        "The stronger the colour, the more rows are flagged. In the column “healthy” they are "
        "false alarms: 5 is right. 100 would be right everywhere else.",
        origin,
        (Panel("", partial(_draw_faults, lines=lines), (5.0, 1.3 + 0.3 * len(lines))),),
    )


def flagged(name: str, task: TaskResults, origin: str) -> TextTable | None:
    """Return the share flagged, and in brackets the AUROC of faulty against healthy rows."""
    lines = _lines(task)
    if not lines:
        return None
    kinds = _kinds(lines)
    body = [
        [label, *(_seen(figures.get(kind, {}), suffix) for kind in kinds)]
        for label, figures, suffix in lines
    ]
    caption = (
        "In brackets: AUROC, the probability that a faulty row has a higher score than a healthy "
        "one; 0.5 is chance. Healthy rows: false alarms."
    )
    title = f"{name}, {origin} data: rows flagged (%)"
    return TextTable(title, caption, ["Score", *kinds], body)


def answered(name: str, task: TaskResults, origin: str) -> TextTable | None:
    """Return the error on faulty rows, and the coverage of the 90 % interval."""
    lines = [line for line in _lines(task) if not line[2]]
    if not lines:
        return None
    kinds = _kinds(lines)
    classes = task.is_classification
    body = [
        [label, *(_said(figures.get(kind, {}), classes) for kind in kinds)]
        for label, figures, _ in lines
    ]
    few = (
        f" All columns, “healthy” too, are of {min(TESTED, task.rows.test):,} of the "
        f"{task.rows.test:,} test rows, drawn at random and the same for every method: its figures "
        "differ from those of all test rows."
    )
    if classes:
        what, caption = "wrong predictions (%)", "Of the rows with a broken channel."
    else:
        what = f"MAE ({task.unit or 'units of the target'}), coverage (%)"
        caption = (
            "After the comma: how many true values are inside the 90 % interval. A method that "
            "noticed the fault would widen it and keep the 90."
        )
    title = f"{name}, {origin} data: {what}"
    return TextTable(title, caption + few, ["Method", *kinds], body)


def _lines(task: TaskResults) -> list[Line]:
    found: list[Line] = []
    for method, cell in task.methods.items():
        figures = cell.faults
        if figures:
            found.append((method, figures, ""))
            for name, suffix in (("laplace", "_epistemic"), ("novelty", "_novelty")):
                if f"flagged{suffix}" in figures[HEALTHY]:
                    found.append((f"{method}, {name}", figures, suffix))
    return found


def _kinds(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(kind for _, figures, _ in lines for kind in figures))


def _seen(figures: Mapping[str, float | None], suffix: str) -> str:
    share, area = figures.get(f"flagged{suffix}"), figures.get(f"auroc{suffix}")
    return percent(share) + ("" if area is None else f" ({area:.2f})")


def _said(figures: Mapping[str, float | None], classes: bool) -> str:
    error, coverage = figures.get("error"), figures.get("coverage_90")
    if error is None:
        return NONE
    return percent(error) if classes else f"{number(error)}, {percent(coverage)}"


def _draw_faults(axes: Axes, lines: Sequence[Line]) -> None:
    rectangle = require("matplotlib.patches", "report").Rectangle
    kinds = _kinds(lines)
    for place, (_, figures, suffix) in enumerate(lines):
        for column, kind in enumerate(kinds):
            share = figures.get(kind, {}).get(f"flagged{suffix}")
            if share is not None:
                corner = (column - 0.47, place - 0.45)
                axes.add_patch(rectangle(corner, 0.94, 0.9, facecolor=BLUE, linewidth=0,
                                         alpha=DEEPEST * share))  # fmt: skip
                axes.text(column, place, f"{100 * share:.0f}", ha="center", va="center",
                          fontsize=SMALL, color=INK)  # fmt: skip
    finish(axes, "")
    axes.grid(False)
    rows(axes, [label for label, _, _ in lines])
    axes.set_xticks(range(len(kinds)), kinds, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.55, len(kinds) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.spines["bottom"].set_visible(False)


# --------------------------------------------------------------------------------------------------
# Risk-coverage curves, and coverage by group
# --------------------------------------------------------------------------------------------------

GOLDEN = 0.6180339887498949


def risk_coverage(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw the error that remains when the least certain predictions are refused."""
    curves = {
        method: cell.risk_coverage
        for method, cell in task.methods.items()
        if cell.risk_coverage is not None and cell.risk_coverage.kept
    }
    if not curves:
        return None
    shown = {method: curves[method] for method in representatives(curves)}
    return Picture(
        f"{name}-risk",
        f"{name}: error when the least certain predictions are refused",
        "A curve that falls means that the stated uncertainty knows where the errors are. One "
        "method of each family, that of the largest k.",
        origin,
        (Panel("", partial(_curves, curves=shown), (4.8, 4.9)),),
    )


def _curves(axes: Axes, curves: Mapping[str, RiskCurve]) -> None:
    for method, curve in curves.items():
        own = style(method)
        pairs = [
            (100 * (1 - kept), risk)
            for kept, risk in zip(curve.kept, curve.risk, strict=True)
            if risk is not None
        ]
        axes.plot([pair[0] for pair in pairs], [pair[1] for pair in pairs], color=own.colour,
                  linestyle=own.dash, linewidth=2, marker=own.marker, markersize=6,
                  markevery=max(1, len(pairs) // 6), label=method)  # fmt: skip
    finish(axes, "least certain predictions refused (%)", next(iter(curves.values())).risk_name)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    legend_below(axes)


def groups(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw one dot for each group: the coverage of its 90 % intervals, its accuracy for classes."""
    found = {m: own.group_coverage for m, own in task.methods.items() if own.group_coverage}
    if not found:
        return None
    by = task.grouped_by or "group"
    classes = task.is_classification
    shown = {method: found[method] for method in representatives(found)}
    label = f"accuracy, one dot per {by} (%)" if classes else f"values inside, one dot per {by} (%)"
    title = "Accuracy" if classes else "Coverage of the 90 % interval"
    draw = partial(_strips, shares=shown, label=label, line=None if classes else 90.0)
    caption = (
        "The thick bar is the median. "
        + ("" if classes else "A model can be right on average (the line) and wrong in most "
           f"{by}s: the spread of the dots tells. ")
        + "One method of each family, that of the largest k."
    )  # fmt: skip
    return Picture(
        f"{name}-groups",
        f"{name}: {title[0].lower()}{title[1:]}, {by} by {by}",
        caption,
        origin,
        (Panel("", draw, (4.8, 1.2 + 0.5 * len(shown))),),
    )


def _strips(
    axes: Axes, shares: Mapping[str, Sequence[float | None]], label: str, line: float | None
) -> None:
    if line is not None:
        axes.axvline(line, color=GREY, linewidth=1.2)
    for place, (method, values) in enumerate(shares.items()):
        x = 100 * np.array([value for value in values if value is not None])
        # The fractional parts of multiples of the golden ratio are spread evenly, without chance.
        y = place + 0.6 * (np.modf(GOLDEN * np.arange(1, x.size + 1))[0] - 0.5)
        own = style(method)
        axes.plot(x, y, own.marker, color=own.colour, markersize=4.5, alpha=0.6,
                  markeredgewidth=0, linestyle="none")  # fmt: skip
        if x.size:
            middle = float(np.median(x))
            axes.plot([middle, middle], [place - 0.36, place + 0.36], color=INK, linewidth=2.4)
    finish(axes, label, grid="x")
    rows(axes, list(shares))
    axes.set_xlim(right=100.8)


# --------------------------------------------------------------------------------------------------
# Additional figures: sign of miscalibration, and sharpness
# --------------------------------------------------------------------------------------------------

SPREAD_FAR = 50.0  # beyond this ratio of the largest value to the smallest, the axis is logarithmic


def spread(name: str, task: TaskResults, origin: str) -> Picture | None:
    """Draw signed deviation area, coverage and sharpness; ECE and Brier score for classes."""
    cells, floor = task.methods, task.floor
    unit = f" ({task.unit})" if task.unit else ""
    shown: list[tuple[str, str, str, dict[str, Any]]]
    if task.is_classification:
        shown = [
            ("ece", "Calibration error", "expected calibration error (ECE)", {"start": 0.0}),
            ("brier", "Brier score", "Brier score, summed over classes", {"start": 0.0}),
        ]
        caption = "ECE: how far the stated confidence is from the share of hits; 0 is right."
    else:
        shown = [
            ("deviation_area_signed", "Signed deviation area", "− too narrow, + too wide",
             {"line": 0.0, "band": floor}),
            ("coverage_90", "Coverage of the 90 % interval", "values inside (%)",
             {"line": 90.0, "factor": 100.0}),
            ("sharpness", "Sharpness", f"mean predicted std{unit}", {"log": True}),
        ]  # fmt: skip
        band = "" if floor is None else f" The grey band is ± the floor ({floor:.4f})."
        caption = (
            "The signed area says which way the intervals are wrong." + band + " Sharpness is the "
            "mean predicted standard deviation: narrow is good only where the coverage is right."
        )
    panels = []
    for key, title, label, options in shown:
        values = {m: cell.figures.get(key) for m, cell in cells.items()}
        if any(value is not None for value in values.values()):
            draw = partial(_dots, values=values, label=label, **options)
            panels.append(Panel(title, draw, (4.6, row_height(len(values)))))
    if not panels:
        return None
    title = f"{name}: how wide, and how wrong"
    if task.is_classification:
        title = f"{name}: confidence against hits"
    return Picture(f"{name}-spread", title, caption, origin, tuple(panels), same_rows=True)


def _dots(
    axes: Axes,
    values: Mapping[str, float | None],
    label: str,
    line: float | None = None,
    band: float | None = None,
    start: float | None = None,
    log: bool = False,
    factor: float = 1.0,
) -> None:
    """Draw a dot for each method on a thin line from where it should be."""
    values = {method: value and factor * value for method, value in values.items()}
    known = [value for value in values.values() if value is not None]
    log = log and max(known) > SPREAD_FAR * min(known) > 0
    if log:
        axes.set_xscale("log")
    if line is not None:
        axes.axvline(line, color=GREY, linewidth=1.2)
    if band is not None:
        axes.axvspan(-band, band, color=GREY, alpha=0.3, linewidth=0)
    for place, (method, value) in enumerate(values.items()):
        if value is None:
            continue
        own = style(method)
        origin = line if line is not None else start
        if origin is not None:
            axes.plot([origin, value], [place, place], color=own.colour, linewidth=2)
        axes.plot(value, place, own.marker, color=own.colour,
                  markersize=10 if own.marker == "*" else 7)  # fmt: skip
    if start is not None:
        axes.set_xlim(left=start)
    finish(axes, label + (", log scale" if log else ""), grid="x")
    rows(axes, list(values))
    if log:
        plain_log(axes.xaxis)
