"""The tables of a benchmark as text cells: methods by data sets, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rdeepsense.experiments.uci.published import REMARK
from rdeepsense.experiments.uci.statistics import with_error

Row = Mapping[str, Any]
Results = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table with its caption; `strong` are the cells that stand out, `aside` published rows."""

    title: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    strong: set[tuple[int, int]] = field(default_factory=set)
    aside: set[int] = field(default_factory=set)


def tables_of(results: Results) -> list[Table]:
    """All tables in the order of their weight."""
    best = "bold: the best mean."
    tables = [_metric(results, "nll", "Test NLL (nats, target's units)", best)]
    if results["reference"] is not None:
        tables.append(_differences(results))
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


def _metric(results: Results, key: str, title: str, caption: str) -> Table:
    published_rows = [row for row in results["published"] if key in row]
    remark = f" In italics: {REMARK}." if published_rows else ""
    table = _by_dataset(
        results, title, f"Mean ± standard error over splits; {caption}{remark}",
        lambda row: with_error(row[key], row[f"{key}_se"]),
    )  # fmt: skip
    if caption.startswith("bold"):
        table.strong.update(_least(results, key))
    for published in published_rows:
        table.aside.add(len(table.rows))
        cells = [published[key].get(name) for name in results["datasets"]]
        table.rows.append(
            [f"{published['method']}, published"]
            + ["-" if cell is None else f"{cell:.2f}" for cell in cells]
        )
    return table


def _differences(results: Results) -> Table:
    reference = results["reference"]
    table = _by_dataset(
        results,
        f"NLL minus that of {reference}, split by split",
        "Mean ± standard error of the paired differences; above 0 the single pass is better; "
        "bold: more than 2 standard errors from 0.",
        lambda row: with_error(row["nll_difference"], row["nll_difference_se"], True),
        lambda row: row["method"] != reference,
    )
    names, columns = [row[0] for row in table.rows], list(results["datasets"])
    for row in results["summary"]:
        value, error = row["nll_difference"], row["nll_difference_se"]
        if row["method"] != reference and error and abs(value) > 2 * error:
            table.strong.add((names.index(row["method"]), columns.index(row["dataset"]) + 1))
    return table


def _pooled(results: Results) -> Table:
    table = _by_dataset(
        results,
        "Deviation area of the test rows of all splits together (signed)",
        "Signed: + intervals too wide, - too narrow. Floor: what a perfect model has on average "
        "with so many rows; rows that several splits test count each time. Read it beside NLL.",
        lambda row: f"{row['pooled_area']:.3f} ({row['pooled_area_signed']:+.3f})",
    )
    # The first method stands for all: they have been judged on the same rows.
    floors = {row["dataset"]: row for row in reversed(results["summary"])}
    table.aside.add(len(table.rows))
    table.rows.append(
        ["floor (test rows)"]
        + [
            f"{floors[name]['pooled_floor']:.3f} ({floors[name]['pooled_rows']:,})"
            for name in results["datasets"]
        ]
    )
    return table


def _splitwise_area(results: Results) -> Table:
    return _by_dataset(
        results,
        "Deviation area of each split's test rows",
        "Mean ± standard error over splits, and in brackets the floor at one split's rows.",
        lambda row: (
            f"{with_error(row['deviation_area'], row['deviation_area_se'])} "
            f"({row['deviation_floor']:.3f})"
        ),
    )


def _cost(results: Results) -> Table:
    table = _by_dataset(
        results,
        "Cost: seconds to fit",
        "Mean over splits, everything that is chosen included; methods of one family share a fit. "
        "Passes: forward passes of one prediction; a GP is no network and has none.",
        lambda row: f"{row['fit_seconds']:.1f}",
    )
    passes = {name: method["passes"] for name, method in results["methods"].items()}
    table.header.insert(1, "passes")
    for row in table.rows:
        row.insert(1, "-" if passes[row[0]] is None else str(passes[row[0]]))
    return table


def _by_dataset(
    results: Results,
    title: str,
    caption: str,
    cell: Callable[[Row], str],
    keep: Callable[[Row], bool] = lambda row: True,
) -> Table:
    """A row for each method, a column for each data set with its number of splits."""
    found = {(row["method"], row["dataset"]): row for row in results["summary"] if keep(row)}
    datasets = list(results["datasets"])
    rows = [
        [method]
        + [cell(found[method, name]) if (method, name) in found else "-" for name in datasets]
        for method in results["methods"]
        if any((method, name) in found for name in datasets)
    ]
    return Table(title, caption, ["", *(f"{n} ({_splits(results, n)})" for n in datasets)], rows)


def _splits(results: Results, dataset: str) -> str:
    """How many splits stand behind a column; a range where methods differ."""
    counts = sorted({row["splits"] for row in results["summary"] if row["dataset"] == dataset})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _least(results: Results, key: str) -> set[tuple[int, int]]:
    methods = [m for m in results["methods"] if any(m == r["method"] for r in results["summary"])]
    places = set()
    for column, name in enumerate(results["datasets"], 1):
        rows = [r for r in results["summary"] if r["dataset"] == name and r[key] is not None]
        least = min(rows, key=lambda row: row[key])["method"]
        places.add((methods.index(least), column))
    return places
