"""The page of the studies in life: a table for each, and one replayed stream over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rdeepsense.experiments.drift.results import DriftResults
from rdeepsense.experiments.report.comparison_page import STYLE
from rdeepsense.experiments.report.html import page, table
from rdeepsense.experiments.report.replay_page import charts
from rdeepsense.experiments.text_table import TextTable
from rdeepsense.live.replay import Replayed

WAYS = {
    "frozen": "the model as it is",
    "tracked": "its intervals stretched by a quantile that is tracked",
    "adapted": "the last layer learns on, in closed form",
    "live": "both, as model.live() does it",
}


def drift_page(
    results: DriftResults, tables: Sequence[TextTable], stream: Replayed | None, unit: str
) -> str:
    """Return the whole page as text; `stream` is drawn over time."""
    ways = "".join(f"<dt>{way}</dt><dd>{words}</dd>" for way, words in WAYS.items())
    parts = [
        "<p>Real data. Every row is predicted before its own label comes. Labels: those of all "
        "rows, of one in ten, or the first few of a group, which are left out of the test.</p>\n"
        f"<dl>{ways}</dl>"
    ]
    for one in tables:
        parts.append(
            f"<h2>{escape(one.title)}</h2>\n{table(one.header, one.rows, kind='cards')}\n"
            f'<p class="soft"><small>{escape(one.caption)}</small></p>'
        )
    if stream is not None:
        parts.append(
            "<h2>One stream of gas sensors over time</h2>\n<p>Batches 8 and 9, seed 0, a label for "
            f"every tenth row.</p>\n{charts(stream, unit)}"
        )
    machine = results.machine
    about = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    about += f", {machine.system} on {machine.processor}, {machine.cores} cores."
    parts.append(f'<p class="soft"><small>{escape(about)}</small></p>')
    return page("Models in life", "\n".join(parts), STYLE)
