"""The closing table of a command: scores on labelled rows, by group, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rdeepsense._records import Record
from rdeepsense.cli.terminal import new_table
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray
    from rich.table import Table

    from rdeepsense.cli.terminal import Terminal
    from rdeepsense.data.findings import Finding
    from rdeepsense.distributions import AnyDistribution
    from rdeepsense.estimators.loading import Estimator
    from rdeepsense.fitting.fitted import BaselineScores
    from rdeepsense.reporting.verdict import Constant, Verdict
    from rdeepsense.status import Statuses


# --------------------------------------------------------------------------------------------------
# Metrics by group
# --------------------------------------------------------------------------------------------------

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
    from rdeepsense.reporting.subject import by_target

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


# --------------------------------------------------------------------------------------------------
# The verdict on the terminal, in the words of the report page
# --------------------------------------------------------------------------------------------------


def judged(
    dist: AnyDistribution,
    y: NDArray[Any],
    targets: Sequence[str],
    constants: Sequence[Constant] | None = None,
    groups: NDArray[Any] | None = None,
    time: pl.Series | None = None,
    status: Statuses | None = None,
    trees: Mapping[str, AnyDistribution] | None = None,
    findings: Sequence[Finding] = (),
) -> dict[str, Verdict]:
    """Judge each target, as a page of the same rows would."""
    from rdeepsense.data.splits import checked_times
    from rdeepsense.reporting.verdict import judge_each, subjects_of

    when, timed_by = None, "time"
    if time is not None:
        when, timed_by = checked_times(time, len(y)), time.name
    subjects = subjects_of(dist, y, targets, groups, when, timed_by)
    return judge_each(subjects, constants, status, trees, findings)


def report(terminal: Terminal, verdicts: Mapping[str, Verdict], timed: bool = True) -> None:
    """Print the two words of each target, and the sentences behind them.

    Rows that were drawn at random are not `timed`: nothing is said of a drift.
    """
    for name, verdict in verdicts.items():
        own = f"{name}: " if len(verdicts) > 1 else ""
        told = [text for text in verdict.sentences if timed or text != verdict.drift]
        for place, words in enumerate([verdict.headline, *told]):
            terminal.line(f"{'verdict' if place == 0 else '':10}{own}{words}")


# --------------------------------------------------------------------------------------------------
# The metrics table, with reference values and standard errors
# --------------------------------------------------------------------------------------------------

COVERAGES = (50, 80, 90, 95)


@dataclass(frozen=True)
class Score(Record):
    """A figure, its standard error, and what a good model would have; None where not known."""

    value: float | None
    standard_error: float | None
    reference: float | None


Scores = Mapping[str, Score]
"""Scores of one target by figure."""


@dataclass(frozen=True)
class ClosingScores:
    """Counts of rows by use, and scores by target, with the name they have in the JSON file."""

    rows: Mapping[str, int]
    name: str
    scores: Mapping[str, Scores] | Scores
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    groups: Mapping[str, list[GroupFigures]] = field(default_factory=dict)
    peers: BaselineScores | None = None
    known: Mapping[str, float] = field(default_factory=dict)  # of rows of groups trained on


NAMES = {
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "nll": "negative log-likelihood",
    "crps": "CRPS",
    "deviation_area": "deviation area",
    **{f"coverage_{c}": f"coverage at {c} %" for c in COVERAGES},
    "width_90": "mean interval width at 90 %",
    "accuracy": "accuracy",
    "f1": "F1, mean over classes",
    "brier": "Brier score (0 to 2)",
    "ece": "expected calibration error",
}


def score_model(
    model: Estimator,
    dist: AnyDistribution,
    y: NDArray[np.generic],
    targets: Sequence[str],
    groups: NDArray[np.generic] | None = None,
) -> dict[str, Scores]:
    """Return the figures of each target; `y` are values or labels, (rows,) or (rows, targets)."""
    from rdeepsense.reporting.subject import by_target

    check_shape(model, dist, y, targets)
    if hasattr(model, "classes_"):
        return {targets[0]: _classification(dist, known_labels(model, y, targets[0]), groups)}
    parts = by_target(dist, y, targets)
    return {name: _regression(part, truth.astype("float64"), groups) for name, part, truth in parts}


def check_shape(
    model: Estimator, dist: AnyDistribution, y: NDArray[np.generic], targets: Sequence[str]
) -> None:
    """Refuse another number of targets than the model has."""
    if hasattr(model, "classes_"):
        if len(targets) > 1:
            raise InputError(f"the model has one target; --target names {len(targets)}")
    elif dist.shape != y.shape:
        outputs = dist.shape[1] if len(dist.shape) == 2 else 1
        raise InputError(f"the model has {outputs} targets; --target names {len(targets)}")


def known_labels(model: Estimator, labels: NDArray[np.generic], target: str) -> NDArray[np.generic]:
    """Return the labels as the model has them; refuse those of no class of its own."""
    import numpy as np

    classes = model.fitted_.target.classes
    assert classes is not None
    known = classes.tolist()
    unknown = [label for label in np.unique(labels).tolist() if label not in known]
    if unknown:
        raise InputError(
            f"--target {target!r} holds the class {unknown[0]!r}, "
            f"which the model was not fitted on; it knows {', '.join(map(str, known))}"
        )
    found: NDArray[np.generic] = classes[np.searchsorted(classes, labels)]
    return found


def score_table(title: str, scores: Mapping[str, Scores], note: str | None = None) -> Table:
    """Return a row for each figure, a column for each target, and what a good model would have."""
    first = next(iter(scores.values()))
    ideals = [_ideal(key, score.reference) for key, score in first.items()]
    columns = ["figure", *(scores if len(scores) > 1 else ["value"])]
    table = new_table(title, columns + ["ideal"] * any(ideals), note)
    for key, ideal in zip(first, ideals, strict=True):
        cells = [_cell(target[key]) for target in scores.values()]
        table.add_row(NAMES[key], *cells, *([ideal] * any(ideals)))
    return table


def caption(classes: bool, groups: str | None) -> str:
    """Return how to read the closing table."""
    between = f", clustered by {groups}" if groups else ""
    text = f"± one standard error{between}."
    if not classes:
        text += " floor: the deviation area that a perfect model has on average with so many rows."
    return text


def _regression(
    dist: AnyDistribution, y: NDArray[np.float64], groups: NDArray[np.generic] | None
) -> Scores:
    import numpy as np

    from rdeepsense import metrics
    from rdeepsense.reporting.subject import row_values

    figures = metrics.evaluate(dist, y)
    rows = row_values(dist, y)
    reference = {"deviation_area": figures["deviation_floor"]}
    for percent in COVERAGES:
        low, high = dist.interval(percent / 100)
        rows[f"coverage_{percent}"] = ((low <= y) & (y <= high)).astype(float)
        reference[f"coverage_{percent}"] = percent / 100
        if percent == 90:
            rows["width_90"] = np.asarray(high - low, np.float64)
            figures["width_90"] = float(np.mean(high - low))
    keys = ["mae", "rmse", "nll", "crps", "deviation_area"]
    keys += [f"coverage_{percent}" for percent in COVERAGES] + ["width_90"]
    return _scores(keys, figures, rows, reference, groups)


def _classification(
    dist: AnyDistribution, y: NDArray[np.generic], groups: NDArray[np.generic] | None
) -> Scores:
    from rdeepsense import metrics
    from rdeepsense.reporting.subject import row_values

    keys = ["accuracy", "f1", "nll", "brier", "ece"]
    return _scores(keys, metrics.evaluate(dist, y), row_values(dist, y), {}, groups)


def _scores(
    keys: list[str],
    figures: dict[str, float],
    rows: dict[str, NDArray[np.float64]],
    reference: dict[str, float],
    groups: NDArray[np.generic] | None,
) -> Scores:
    from rdeepsense.reporting.subject import standard_error

    return {
        key: Score(
            _finite(figures[key]),
            _finite(standard_error(rows[key], groups)) if key in rows else None,
            reference.get(key),
        )
        for key in keys
    }


def _finite(value: float | None) -> float | None:
    """Return None for what JSON cannot hold."""
    return value if value is not None and math.isfinite(value) else None


def _cell(score: Score) -> str:
    """Return the value to as many decimals as its standard error has with two digits."""
    value, error = score.value, score.standard_error
    if value is None:
        return "not finite"
    if not error:
        return f"{value:.4g}"
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def _ideal(key: str, reference: float | None) -> str:
    if reference is None:
        return ""
    return f"{reference:.4f} (floor)" if key == "deviation_area" else f"{reference:.2f}"
