"""`rdeepsense evaluate`: the closing table of `fit`, on another labelled table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rdeepsense.cli.columns import check_known, labels, numeric_targets, some
from rdeepsense.cli.flagged import flagged_rows
from rdeepsense.cli.inference import load_model, model_inputs
from rdeepsense.cli.scores import caption, score_model, score_table
from rdeepsense.cli.table import read_table
from rdeepsense.cli.terminal import Terminal, check_outputs, write_json
from rdeepsense.experiments.records import plain


def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    table: Annotated[Path, typer.Argument(help="CSV or Parquet table with inputs and targets.")],
    target: Annotated[
        list[str], typer.Option(help="Column with the truth; several in the order given to fit.")
    ],
    groups: Annotated[
        str | None, typer.Option(help="Column (user, record) that standard errors are between.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file too.")] = None,
) -> None:
    """Score a model's predictions and their uncertainty on a labelled table."""
    terminal = Terminal()
    check_outputs({"--json": json}, inputs=(model, table))
    estimator = load_model(model)
    frame = read_table(table)
    check_known(frame, target, "--target")
    check_known(frame, [groups] if groups else [], "--groups")
    classes = hasattr(estimator, "classes_")
    inputs, extra = model_inputs(estimator, frame, [*target, *([groups] if groups else [])])
    y = labels(frame, target[0]) if classes else numeric_targets(frame, target)
    group = labels(frame, groups, "--groups") if groups else None
    scores = score_model(estimator, inputs, y, target, group)
    if extra:
        terminal.line(f"{len(extra)} columns not used: {some(extra)}")
    flagged_rows(estimator, inputs).report(terminal)
    title = f"Figures on {frame.height:,} rows of {table}"
    terminal.table(score_table(title, scores, caption(classes, groups)))
    if json is not None:
        task = "classification" if classes else "regression"
        write_json(json, {"task": task, "rows": frame.height, "figures": plain(scores)})
        terminal.line(f"wrote {json}")
