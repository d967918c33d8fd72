"""Figures of each group: a mean over all rows may hide a user for whom a model is no good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdeepsense._records import Record
from rdeepsense.cli.terminal import new_table
from rdeepsense.reporting.subject import by_target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.distributions import AnyDistribution

SHOWN = 10
COLUMNS = {
    "mae": "mean absolute error",
    "accuracy": "accuracy",
    "nll": "NLL",
    "coverage_90": "coverage at 90 %",
}


@dataclass(frozen=True)
class GroupFigures(Record):
    """The figures of one group's rows."""

    group: str
    rows: int
    figures: dict[str, float]


def by_group(
    dist: AnyDistribution,
    y: NDArray[np.generic],
    targets: Sequence[str],
    groups: NDArray[np.generic],
) -> dict[str, list[GroupFigures]]:
    """Return for each target the figures of each group, the worst NLL first."""
    return {
        name: _of_target(part, truth, groups) for name, part, truth in by_target(dist, y, targets)
    }


def _of_target(
    dist: AnyDistribution, y: NDArray[np.generic], groups: NDArray[np.generic]
) -> list[GroupFigures]:
    import numpy as np

    from rdeepsense.distributions import Categorical

    if isinstance(dist, Categorical):
        numbers = dist.encode(y)
        rows = {"accuracy": dist.mode == numbers, "nll": -dist.log_prob(numbers)}
    else:
        truth = y.astype(np.float64)
        low, high = dist.interval(0.9)
        rows = {
            "mae": np.abs(dist.mean - truth),
            "nll": -dist.log_prob(truth),
            "coverage_90": (low <= truth) & (truth <= high),
        }
    labels, number = np.unique(groups, return_inverse=True)
    counts = np.bincount(number)
    means = {key: np.bincount(number, weights=own) / counts for key, own in rows.items()}
    found = [
        GroupFigures(str(label), int(counts[k]), {key: float(own[k]) for key, own in means.items()})
        for k, label in enumerate(labels)
    ]
    return sorted(found, key=lambda one: -one.figures["nll"])


def report_groups(
    terminal: Terminal,
    dist: AnyDistribution,
    y: NDArray[np.generic],
    targets: Sequence[str],
    column: str | None,
    groups: NDArray[np.generic] | None,
) -> dict[str, list[GroupFigures]]:
    """Print the figures of each group, where there are groups, and return them."""
    if column is None or groups is None:
        return {}
    found = by_group(dist, y, targets, groups)
    for name, figures in found.items():
        terminal.table(group_table(column, name if len(found) > 1 else None, figures))
    return found


def group_table(column: str, target: str | None, found: Sequence[GroupFigures]) -> Table:
    """Return a row for each group, the worst first."""
    of = f" of {target}" if target else ""
    more = len(found) - SHOWN
    note = (
        f"and {more:,} groups more, all with a lower NLL; --json FILE has them"
        if more > 0
        else None
    )
    keys = list(found[0].figures)
    title = f"Figures{of} by {column}, the worst NLL first"
    table = new_table(title, [column, "rows", *(COLUMNS[key] for key in keys)], note)
    for one in found[:SHOWN]:
        cells = [f"{one.figures[key]:.4g}" for key in keys]
        table.add_row(one.group, f"{one.rows:,}", *cells)
    return table
