"""`rdeepsense adapt`: a model for one person or sensor, from a few labelled rows of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdeepsense._records import to_plain
from rdeepsense.cli.columns import check_known
from rdeepsense.cli.inference import (
    answerable,
    labelled_rows,
    labelled_windows,
    load_model,
    model_inputs,
    report_unanswered,
    rows_of,
    target_columns,
    truth_of,
)
from rdeepsense.cli.options import TABLE, JsonFile, MissingMarks, Overwrite, Quiet
from rdeepsense.cli.reading.table import read_table
from rdeepsense.cli.scores import NAMES, Scores, check_shape, score_model
from rdeepsense.cli.terminal import STDOUT, Terminal, check_outputs, new_table, write_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rdeepsense.distributions import AnyDistribution
    from rdeepsense.estimators.loading import Estimator

Facts = dict[str, Any]  # Any: whatever JSON holds
FIGURES = ("mae", "accuracy", "nll")
LEARNT_FROM = "learnt from these very rows: what it does for others, evaluate tells on other rows"


def adapt(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    table: Annotated[Path, typer.Argument(help=f"A few labelled rows, or a log: {TABLE}.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    target: Annotated[
        list[str] | None,
        typer.Option(help="Column with the truth; by default those that the model file names."),
    ] = None,
    missing_mark: MissingMarks = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
    json: JsonFile = None,
) -> None:
    """Adapt a model to one person or sensor by a few labelled rows, without training."""
    terminal = Terminal(quiet, json)
    check_outputs({"--output": output, "--json": json}, inputs=(model, table), overwrite=overwrite)
    estimator = load_model(model)
    if estimator.fitted_.recipe is not None:
        inputs, y, targets = labelled_windows(terminal, estimator, table, target, missing_mark)
    else:
        targets = target_columns(estimator, target)
        inputs, y = _rows(terminal, estimator, table, targets, missing_mark)
    before = estimator.predict_dist(inputs)
    check_shape(estimator, before, y, targets)
    adapted = estimator.adapt(inputs, y)
    adapted.save(output)
    after = adapted.predict_dist(inputs)
    facts = _facts(adapted, before, after, targets)
    scores = {
        name: score_model(estimator, dist, y, targets)
        for name, dist in (("before", before), ("after", after))
    }
    _tell(terminal, facts, scores)
    terminal.line(f"wrote {output}")
    if json is not None:
        shown = {
            when: {name: {k: own[k] for k in FIGURES if k in own} for name, own in each.items()}
            for when, each in scores.items()
        }
        write_json(json, {**facts, "these_rows": to_plain(shown)})
        if json != STDOUT:
            terminal.line(f"wrote {json}")


def _rows(
    terminal: Terminal,
    estimator: Estimator,
    table: Path,
    targets: list[str],
    missing_mark: list[str] | None,
) -> tuple[Any, NDArray[Any]]:
    """Read the rows of a table that can be answered, and their truth."""
    read = read_table(table, missing_mark or [])
    check_known(read.frame, targets, "--target")
    read = labelled_rows(estimator, read, targets)
    found = model_inputs(estimator, read, targets)
    found.report(terminal)
    answered = answerable(estimator, found.values)
    report_unanswered(terminal, int((~answered).sum()))
    return rows_of(found.values, answered), truth_of(estimator, read, targets)[answered]


def _facts(
    model: Estimator, before: AnyDistribution, after: AnyDistribution, targets: list[str]
) -> Facts:
    """Return what was learnt, on the labelled rows."""
    fitted = model.fitted_
    assert fitted.correction is not None
    assert fitted.adaptation is not None
    facts: Facts = {
        "rows": len(before),
        "labels": fitted.correction.labels,
        "adapted_from": fitted.correction.source,
        "chosen_from_groups": fitted.adaptation.groups,
    }
    if fitted.target.is_classes:
        return facts
    rows = len(before)
    shift = (after.mean - before.mean).reshape(rows, -1).mean(0)
    kept = (after.var / before.var).reshape(rows, -1).mean(0)
    names = targets if len(targets) == len(shift) else [str(k) for k in range(len(shift))]
    facts["shift"] = dict(zip(names, shift.tolist(), strict=True))
    facts["variance_kept"] = dict(zip(names, kept.tolist(), strict=True))
    return facts


def _tell(terminal: Terminal, facts: Facts, scores: dict[str, dict[str, Scores]]) -> None:
    earlier = facts["labels"] - facts["rows"]
    more = f" after {earlier:,} that it had learnt from before" if earlier else ""
    terminal.line(f"labels    {facts['rows']:,}{more}")
    groups = facts["chosen_from_groups"]
    terminal.line(
        f"prior     chosen on {groups:,} groups that were left out of the fit"
        if groups
        else "prior     a default: the model was fitted without groups, so the variance stays"
    )
    for name, shift in facts.get("shift", {}).items():
        kept = facts["variance_kept"][name]
        terminal.line(f"{name}: shifted by {shift:+.4g}, variance times {kept:.3f}")
    table = new_table("Before and after", ["figure", "before", "after"], LEARNT_FROM)
    for target, own in scores["before"].items():
        several = f"{target}: " if len(scores["before"]) > 1 else ""
        for key in FIGURES:
            if key in own:
                values = (one.value for one in (own[key], scores["after"][target][key]))
                cells = ["not finite" if value is None else f"{value:.4g}" for value in values]
                table.add_row(f"{several}{NAMES[key]}", *cells)
    terminal.table(table)
