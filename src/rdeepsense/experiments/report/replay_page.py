"""The page of a replayed stream: its table and its charts over time, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rdeepsense.experiments.report.comparison_page import STYLE
from rdeepsense.experiments.report.html import page, table
from rdeepsense.experiments.report.pictures import SCHEME, svgs
from rdeepsense.experiments.report.replay_figures import BAND, replay_picture, time_text
from rdeepsense.experiments.text_table import TextTable
from rdeepsense.live.replay import Replayed


def replay_table(found: Replayed, ways: Sequence[str] = ("frozen", "live")) -> TextTable:
    """Return a row for each figure, a column for each way."""
    each = {way: found.ways[way].figures() for way in ways}
    percent = f"{100 * found.coverage:g} %"
    names = {
        "error": "mean absolute error",
        "coverage": f"{percent} intervals that hold",
        "width": "mean width",
        "nll": "negative log-likelihood",
    }
    if found.is_classes:
        names |= {
            "error": "accuracy",
            "coverage": f"{percent} sets that hold",
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
        f"{known:,} of {len(found.labelled):,} rows have their truth, {told:,} of them were told "
        "to the live model, each after it was predicted."
    )
    return TextTable("Frozen beside live", caption, ["", *ways], rows)


def replay_page(title: str, about: str, found: Replayed, unit: str = "") -> str:
    """Return the whole page as text."""
    one = replay_table(found)
    parts = [f"<p>{escape(about)}</p>"] if about else []
    parts += [
        f"<h2>{escape(one.title)}</h2>\n{table(one.header, one.rows, kind='cards')}",
        f'<p class="soft"><small>{escape(one.caption)}</small></p>',
        f"<h2>Over time</h2>\n{charts(found, unit)}",
    ]
    return page(title, "\n".join(parts), SCHEME + STYLE)


def charts(found: Replayed, unit: str = "") -> str:
    """Return the charts of a stream and how to read them."""
    drawn = svgs(replay_picture(found, unit))
    alarm = " The dotted line is the alarm: rows were no longer like those of the training."
    return (
        f"<figure>{''.join(drawn)}</figure>\n"
        '<p class="soft"><small>Grey: the promised share, and where '
        f"{100 * BAND:g} % of such means would lie if every interval held with that probability."
        f"{alarm if found.alarm is not None else ''}</small></p>"
    )
