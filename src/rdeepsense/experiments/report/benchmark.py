"""The page of a benchmark: every table, the pictures, the sources, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rdeepsense.experiments.report.comparison import comparison_figure
from rdeepsense.experiments.report.html import page, table
from rdeepsense.experiments.report.method_list import method_list
from rdeepsense.experiments.report.pictures import inline_svg
from rdeepsense.experiments.text_table import TextTable
from rdeepsense.experiments.uci.results import BenchmarkResults


def benchmark_page(results: BenchmarkResults, tables: Sequence[TextTable]) -> str:
    """Return the whole page as text."""
    parts = [_opening(results)]
    label = "NLL differences and deviation areas of each method on each data set"
    for number, one in enumerate(tables):
        parts.append(
            f"<h2>{escape(one.title)}</h2>\n"
            f"{table(one.header, one.rows, one.strong, one.aside)}\n"
            f'<p class="soft"><small>{escape(one.caption)}</small></p>'
        )
        if number == 1:
            picture = inline_svg(comparison_figure(results.summary), label)
            parts.append(f"<figure>{picture}</figure>")
    return page("UCI regression benchmark", "\n".join([*parts, _sources(results)]))


def _opening(results: BenchmarkResults) -> str:
    settings, versions, machine = results.settings, results.versions, results.machine
    sets = ", ".join(
        f"{escape(name)} ({data.rows:,} rows, {data.inputs} inputs)"
        for name, data in results.datasets.items()
    )
    hidden = "chosen by the methods that leave them open, else 64, 64"
    if not isinstance(settings.hidden, str):
        hidden = ", ".join(str(width) for width in settings.hidden)
    return (
        f"<p>Data sets: {sets}. In a column's head, in brackets, the number of splits.</p>\n"
        f"<p>Hidden layers ({hidden}), seed {settings.seed}. Every choice was made on training "
        "and validation rows; test rows were used for these figures alone. Splits share rows, so "
        "standard errors over splits are a little too small.</p>\n"
        f"{method_list(results.methods)}\n"
        f'<p class="soft"><small>rdeepsense {escape(versions["rdeepsense"])}, Python '
        f"{escape(versions['python'])}, {escape(machine.system)} on "
        f"{escape(machine.processor)}, {machine.cores} cores.</small></p>"
    )


def _sources(results: BenchmarkResults) -> str:
    lines = [
        f"<li>{escape(row.method)}: {escape(row.source)} ({escape(row.remark)}).</li>"
        for row in results.published
    ]
    lines += [
        f"<li>{escape(row.family)} warned in {row.cells} cells, for example: "
        f"{escape(row.example)}</li>"
        for row in results.warnings
    ]
    lines += [
        f"<li>Failed: {escape(row.family)} on {escape(row.dataset)}, split {row.split}: "
        f"{escape(row.error)}</li>"
        for row in results.failed
    ]
    return f"<h2>Sources and remarks</h2>\n<ul>{''.join(lines)}</ul>" if lines else ""
