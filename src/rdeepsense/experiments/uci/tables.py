"""The tables of a benchmark as text cells: methods by data sets, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Callable

from rdeepsense.experiments.text_table import TextTable
from rdeepsense.experiments.uci.published import REMARK
from rdeepsense.experiments.uci.results import BenchmarkResults
from rdeepsense.experiments.uci.statistics import PooledArea, Summary, with_error


def tables_of(results: BenchmarkResults) -> list[TextTable]:
    """Return all tables in the order of their weight."""
    best = "bold: the best mean."
    tables = [_metric(results, "nll", "Test NLL (nats, target's units)", best)]
    if results.reference is not None:
        tables.append(_differences(results, results.reference))
    return [
        *tables,
        _pooled(results),
        _metric(results, "rmse", "Test RMSE", best),
        _metric(results, "mae", "Test MAE", best),
        _metric(results, "crps", "Test CRPS", best),
        _metric(results, "coverage_90", "Coverage of the 90 % interval", "0.90 is right."),
        _splitwise_area(results),
        _cost(results),
    ]


def _metric(results: BenchmarkResults, key: str, title: str, caption: str) -> TextTable:
    published = [(row.method, own) for row in results.published if (own := row.by_dataset(key))]
    remark = f" In italics: {REMARK}." if published else ""
    table = _by_dataset(
        results, title, f"Mean ± standard error over splits; {caption}{remark}",
        lambda row: with_error(*row.means[key]),
    )  # fmt: skip
    if caption.startswith("bold"):
        table.strong.update(_least(results, key))
    for method, own in published:
        table.aside.add(len(table.rows))
        cells = [own.get(name) for name in results.datasets]
        table.rows.append(
            [f"{method}, published", *("-" if cell is None else f"{cell:.2f}" for cell in cells)]
        )
    return table


def _differences(results: BenchmarkResults, reference: str) -> TextTable:
    table = _by_dataset(
        results,
        f"NLL minus that of {reference}, split by split",
        "Mean ± standard error of the paired differences; above 0 the single pass is better; "
        "bold: more than 2 standard errors from 0.",
        lambda row: with_error(*row.differences["nll"], signed=True),
        lambda row: row.method != reference,
    )
    names = [row[0] for row in table.rows]
    for column, rows in enumerate(results.summary.values(), 1):
        for row in rows:
            value, error = row.differences["nll"]
            clear = value is not None and error and abs(value) > 2 * error
            if row.method != reference and clear:
                table.strong.add((names.index(row.method), column))
    return table


def _pooled(results: BenchmarkResults) -> TextTable:
    table = _by_dataset(
        results,
        "Deviation area of the test rows of all splits together (signed)",
        "Signed: + intervals too wide, - too narrow. Floor: what a perfect model has on average "
        "with so many rows; rows that several splits test count each time. Read it beside NLL.",
        lambda row: f"{_area(row).pooled_area:.3f} ({_area(row).pooled_area_signed:+.3f})",
    )
    # The first method stands for all: they have been scored on the same rows.
    firsts = [_area(rows[0]) for rows in results.summary.values()]
    table.aside.add(len(table.rows))
    table.rows.append(
        ["floor (test rows)", *(f"{own.pooled_floor:.3f} ({own.pooled_rows:,})" for own in firsts)]
    )
    return table


def _area(row: Summary) -> PooledArea:
    assert row.pooled is not None  # a benchmark is of regression
    return row.pooled


def _splitwise_area(results: BenchmarkResults) -> TextTable:
    return _by_dataset(
        results,
        "Deviation area of each split's test rows",
        "Mean ± standard error over splits, and in brackets the floor at one split's rows.",
        lambda row: (
            f"{with_error(*row.means['deviation_area'])} ({row.means['deviation_floor'].value:.3f})"
        ),
    )


def _cost(results: BenchmarkResults) -> TextTable:
    table = _by_dataset(
        results,
        "Cost: seconds to fit",
        "Mean over splits, everything that is chosen included; methods of one family share a fit. "
        "Passes: forward passes of one prediction; what is no network has none.",
        lambda row: f"{row.fit_seconds:.1f}",
    )
    passes = {method.name: method.passes for method in results.methods}
    table.header.insert(1, "passes")
    for row in table.rows:
        row.insert(1, "-" if passes[row[0]] is None else str(passes[row[0]]))
    return table


def _by_dataset(
    results: BenchmarkResults,
    title: str,
    caption: str,
    cell: Callable[[Summary], str],
    keep: Callable[[Summary], bool] = lambda row: True,
) -> TextTable:
    """Return a row for each method, a column for each data set with its number of splits."""
    found = {
        (row.method, name): row
        for name, rows in results.summary.items()
        for row in rows
        if keep(row)
    }
    datasets = list(results.datasets)
    rows = [
        [name] + [cell(found[name, data]) if (name, data) in found else "-" for data in datasets]
        for name in (method.name for method in results.methods)
        if any((name, data) in found for data in datasets)
    ]
    header = ["", *(f"{name} ({_splits(results, name)})" for name in datasets)]
    return TextTable(title, caption, header, rows)


def _splits(results: BenchmarkResults, dataset: str) -> str:
    """Return how many splits stand behind a column; a range where methods differ."""
    counts = sorted({row.splits for row in results.summary[dataset]})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _least(results: BenchmarkResults, key: str) -> set[tuple[int, int]]:
    """Return the cell of the least mean in each column."""
    scored = {row.method for rows in results.summary.values() for row in rows}
    methods = [method.name for method in results.methods if method.name in scored]
    places = set()
    for column, rows in enumerate(results.summary.values(), 1):
        known = {row.method: value for row in rows if (value := row.means[key].value) is not None}
        places.add((methods.index(min(known, key=lambda name: known[name])), column))
    return places
