"""The page of a replayed stream: a table, and coverage, error and width over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from rdeepsense.arrays import Floats
from rdeepsense.comparison.page import STYLE
from rdeepsense.errors import require
from rdeepsense.live.replay import Replayed
from rdeepsense.pages.html import BANNER, TextTable, banner, page, table
from rdeepsense.pages.pictures import GRID, SCHEME, Panel, Picture, legend_below, svgs
from rdeepsense.plot.figures import BLUE, GREY, INK, LARGE, NORMAL, SMALL, VERMILION, literal
from rdeepsense.reporting.subject import standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# Charts over time: coverage, error and width, frozen and live model
#
# Lines are means over the latest rows. The band around the promised coverage is where 95 % of such
# shares lie when every interval holds with the promised probability, row by row independently.
# --------------------------------------------------------------------------------------------------

SHOWN = {"frozen": (VERMILION, "--"), "live": (BLUE, "-")}
PARTS, FEWEST = 12, 30  # a line's mean is over this part of the stream, and so many rows at least
MOST_POINTS = 800
BAND = 0.95
TICKS = 4  # times at the axis
BLOCKS, FEWEST_OF_BLOCK = 10, 3  # of consecutive rows, by which a verdict has its error
PANELS = ("coverage", "error", "width")


def window_of(rows: int) -> int:
    """Return over how many of the latest rows lines are means."""
    return min(rows, max(FEWEST, rows // PARTS))


def rolling(values: Floats, window: int) -> tuple[Floats, Floats]:
    """Return the mean of the latest `window` values that are numbers, and how many those are.

    Row k has a mean once `window` rows have come and one of them has a value; else NaN.
    """
    known = ~np.isnan(values)
    sums = np.cumsum(np.r_[0.0, np.where(known, values, 0.0)])
    counts = np.cumsum(np.r_[0, known])
    first = np.maximum(np.arange(1, len(values) + 1) - window, 0)
    ends = np.arange(1, len(values) + 1)
    count = np.where(ends >= window, counts[ends] - counts[first], 0).astype(np.float64)
    mean = np.full(len(values), np.nan)
    some = count > 0
    mean[some] = (sums[ends] - sums[first])[some] / count[some]
    return mean, count


def replay_picture(found: Replayed, unit: str = "") -> Picture:
    """Draw each panel as axes of its own, for a page."""
    return Picture(
        "replay",
        "Over time",
        "",
        "",
        tuple(
            Panel("", partial(_draw, found=found, panel=name, unit=unit), (5.6, 3.4))
            for name in PANELS
        ),
    )


def replay_figure(found: Replayed, title: str, unit: str = "") -> Figure:
    """Draw coverage and error side by side, as one picture."""
    figure: Figure = require("matplotlib.figure", "report").Figure(
        figsize=(10.5, 3.8), layout="constrained"
    )
    figure.suptitle(title, fontsize=LARGE, color=INK)
    for axes, name in zip(figure.subplots(1, 2), PANELS, strict=False):
        _draw(axes, found, name, unit)
    return literal(figure)


def _draw(axes: Axes, found: Replayed, panel: str, unit: str) -> None:
    rows = len(found.labelled)
    window = window_of(rows)
    shown = np.unique(np.linspace(0, rows - 1, min(rows, MOST_POINTS)).astype(int))
    count = rolling(found.ways["live"].held, window)[1]
    if panel == "coverage":
        _promise(axes, found.coverage, shown, count[shown])
    for way, (colour, dash) in SHOWN.items():
        told = found.ways[way]
        values = {"coverage": told.held, "error": told.error, "width": told.width}[panel]
        line = rolling(values, window)[0][shown]
        axes.plot(shown + 1, line, color=colour, linestyle=dash, linewidth=1.8, label=way)
    axes.set_xlim(0, rows)
    bottom, top = axes.get_ylim()
    if panel == "coverage":
        axes.set_ylim(min(max(bottom, 0.0), 0.5), 1.02)
    else:
        axes.set_ylim(0, 1.08 * top)
    if found.alarm is not None:
        axes.axvline(found.alarm, color=INK, linestyle=":", linewidth=1.4, label="alarm")
    _finish(axes, *_words(found, unit)[panel], window)
    if found.times is not None:
        _label_times(axes, found.times, found.timed_by)


def _label_times(axes: Axes, times: NDArray[Any], name: str) -> None:
    """Label rows by their times."""
    rows = np.linspace(0, len(times) - 1, min(TICKS, len(times))).astype(int)
    axes.set_xticks(rows + 1, _short(times[rows]))
    axes.set_xlabel(axes.get_xlabel().replace("row of the stream", name), fontsize=SMALL)


def _short(times: NDArray[Any]) -> list[str]:
    """Return times as short as they differ: days, or hours of days, or seconds of one day."""
    if times.dtype.kind != "M":
        return [time_text(one) for one in times]
    texts = [str(one) for one in times.astype("datetime64[s]")]
    days = {text[:10] for text in texts}
    if len(days) == len(texts):
        return [text[:10] for text in texts]
    return [text[5:16].replace("T", " ") if len(days) > 1 else text[11:] for text in texts]


def time_text(value: Any) -> str:  # Any: a number or numpy's date
    """Return a time in words, a date without the midnight it begins with."""
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[s]")).replace("T", " ").removesuffix(" 00:00:00")
    return f"{float(value):.6g}"


def _promise(axes: Axes, coverage: float, shown: Floats, count: Floats) -> None:
    """Draw the promised share, and where it lies by chance alone."""
    some = count > 0
    ends: Callable[[float], Floats] = lambda p: (  # noqa: E731
        binom.ppf(p, count[some], coverage) / count[some]
    )
    low, high = ends((1 - BAND) / 2), ends((1 + BAND) / 2)
    axes.fill_between(shown[some] + 1, low, high, color=GREY, alpha=0.25, linewidth=0,
                      label="by chance")  # fmt: skip
    axes.axhline(coverage, color=GREY, linewidth=1.2)


def _words(found: Replayed, unit: str) -> dict[str, tuple[str, str]]:
    """Return title and label of each panel."""
    percent, of = f"{100 * found.coverage:g} %", f", {unit}" if unit else ""
    if found.is_classes:
        return {
            "coverage": (
                f"Sets that contain the class, {percent} promised",
                "share of rows",
            ),
            "error": ("Wrong answers", "share of rows"),
            "width": ("Size of the set", "classes"),
        }
    return {
        "coverage": (
            f"Intervals that contain the value, {percent} promised",
            "share of rows",
        ),
        "error": ("Error", f"mean absolute error{of}"),
        "width": ("Width of the interval", f"mean width{of}"),
    }


def _finish(axes: Axes, title: str, y: str, window: int) -> None:
    axes.set_title(title, fontsize=NORMAL, color=INK, loc="left")
    axes.set_xlabel(f"row of the stream; means of the latest {window:,}", fontsize=SMALL)
    axes.set_ylabel(y, fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(color=GRID, linewidth=0.6)
    legend_below(axes, ncols=4)


# --------------------------------------------------------------------------------------------------
# The page of a replayed stream
# --------------------------------------------------------------------------------------------------


def replay_table(
    found: Replayed, ways: Sequence[str] = ("frozen", "live"), unit: str = ""
) -> TextTable:
    """Return a row for each figure, a column for each way."""
    each = {way: found.ways[way].figures() for way in ways}
    percent = f"{100 * found.coverage:g} %"
    of = f" ({unit})" if unit else ""
    names = {
        "error": f"mean absolute error{of}",
        "coverage": f"coverage of {percent} intervals",
        "width": f"mean width{of}",
        "nll": "negative log-likelihood",
    }
    if found.is_classes:
        names |= {
            "error": "accuracy",
            "coverage": f"coverage of {percent} sets",
            "width": "mean size of the set",
        }
    rows = []
    for key, name in names.items():
        values = [own[key] for own in each.values()]
        if found.is_classes and key == "error":
            values = [1 - value for value in values]
        rows.append([name, *(f"{value:.4g}" for value in values)])
    rang = "none" if found.alarm is None else f"row {found.alarm:,}"
    if found.alarm is not None and found.times is not None:
        rang += f" ({time_text(found.times[found.alarm - 1])})"
    rows.append(["alarm", *(rang if way in ("live", "adapted") else "-" for way in ways)])
    known, told = int(found.labelled.sum()), int(found.observed.sum())
    caption = (
        f"{known:,} of {len(found.labelled):,} rows have a label; {told:,} labels were revealed to "
        "the live model, each after its row was predicted."
    )
    return TextTable("Frozen beside live", caption, ["", *ways], rows)


@dataclass(frozen=True)
class ReplayVerdict:
    """Whether learning from labels helped, in words."""

    headline: str
    sentences: tuple[str, ...]
    tone: str  # of the banner: good, bad or open


def replay_verdict(found: Replayed, unit: str = "") -> ReplayVerdict:
    """Compare the live with the frozen model by the NLL of the rows that have a label.

    Rows that follow each other are alike, so the standard error of the mean difference is that of
    the means of consecutive blocks.
    """
    frozen, live = (found.ways[way] for way in SHOWN)
    gain = (frozen.nll - live.nll)[~np.isnan(frozen.error)]
    error = None
    if len(gain) >= BLOCKS * FEWEST_OF_BLOCK:
        error = standard_error(np.array([part.mean() for part in np.array_split(gain, BLOCKS)]))
    difference, (before, after) = float(gain.mean()), (one.figures() for one in (frozen, live))
    told = f"NLL {abs(difference):.2g} ± {error:.2g} nats" if error is not None else ""
    if error is None:
        headline, tone = "Too few labeled rows to tell whether learning helps", "open"
    elif abs(difference) <= 2 * error:
        headline, tone = "Learning from labels made no clear difference", "open"
        told = f"NLL {difference:.2g} ± {error:.2g} nats lower for the live model."
    elif difference > 0:
        headline, tone = "Learning from labels helped", "good"
        told += " lower for the live model."
    else:
        headline, tone = "Learning from labels did harm", "bad"
        told += " higher for the live model."
    percent, of = f"{100 * found.coverage:g} %", f" {unit}" if unit else ""
    if found.is_classes:
        point = (
            f"Accuracy {100 * (1 - after['error']):.1f} % (frozen: "
            f"{100 * (1 - before['error']):.1f} %)."
        )
        what = f"{percent} sets contain the class of"
    else:
        point = f"MAE {after['error']:.3g}{of} (frozen: {before['error']:.3g}{of})."
        what = f"{percent} intervals contain the value of"
    held = (
        f"{what} {100 * after['coverage']:.0f} % of the rows "
        f"(frozen: {100 * before['coverage']:.0f} %)."
    )
    alarm = "No drift alarm."
    if found.alarm is not None:
        at = "" if found.times is None else f" ({time_text(found.times[found.alarm - 1])})"
        alarm = f"Drift alarm at row {found.alarm:,}{at}."
    return ReplayVerdict(headline, tuple(one for one in (told, point, held, alarm) if one), tone)


def replay_page(title: str, about: str, found: Replayed, unit: str = "") -> str:
    """Return the whole page as text."""
    one, said = replay_table(found, unit=unit), replay_verdict(found, unit)
    parts = [f"<p>{escape(about)}</p>"] if about else []
    parts += [
        banner(said.tone, said.headline, "", said.sentences),
        f"<h2>{escape(one.title)}</h2>\n{table(one.header, one.rows, kind='cards')}",
        f'<p class="soft"><small>{escape(one.caption)}</small></p>',
        f"<h2>Over time</h2>\n{charts(found, unit)}",
    ]
    return page(title, "\n".join(parts), SCHEME + STYLE + BANNER)


def charts(found: Replayed, unit: str = "") -> str:
    """Return the charts of a stream and how to read them."""
    drawn = svgs(replay_picture(found, unit))
    alarm = " The dotted line is the alarm: rows were no longer like those of the training."
    return (
        f"<figure>{''.join(drawn)}</figure>\n"
        '<p class="soft"><small>Gray: the promised share, and where '
        f"{100 * BAND:g} % of such means would lie if every interval contained its value with "
        "that probability."
        f"{alarm if found.alarm is not None else ''}</small></p>"
    )
