"""`rdeepsense predict`: a distribution for every row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdeepsense.cli.answerable import answerable, report_unanswered, rows_of
from rdeepsense.cli.columns import some
from rdeepsense.cli.flagged import flagged_rows
from rdeepsense.cli.inference import load_model, model_inputs
from rdeepsense.cli.options import TABLE, MissingMarks, Overwrite, Quiet
from rdeepsense.cli.reading.table import read_table
from rdeepsense.cli.terminal import STDOUT, Terminal, check_outputs, new_table
from rdeepsense.cli.writing import check_suffix, write_table
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray
    from rich.table import Table

    from rdeepsense.arrays import Booleans
    from rdeepsense.distributions import AnyDistribution
    from rdeepsense.estimators.loading import Estimator

SHOWN = 10


def predict(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    table: Annotated[Path, typer.Argument(help=f"Table with the model's inputs: {TABLE}.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Table to write: .csv, .tsv or .parquet; - for CSV on stdout."
        ),
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Probability that the interval low to high should hold.")
    ] = 0.9,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Passes with dropout on; by default one without.")
    ] = None,
    missing_mark: MissingMarks = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Predict mean, std and an interval (or class probabilities) for every row.

    The status of a row is "ok", or says which inputs are beyond what the model was trained on. A
    row that lacks a value which no training row lacked has no answer, and the status "missing".
    """
    import polars as pl

    terminal = Terminal(quiet, output)
    if not 0 < coverage < 1:
        raise InputError(f"--coverage {coverage}: must lie between 0 and 1")
    if output is not None:
        check_suffix(output)
        check_outputs({"--output": output}, (model, table), overwrite, stream="--output")
    estimator = load_model(model)
    read = read_table(table, missing_mark or [])
    found = model_inputs(estimator, read, [])
    found.report(terminal)
    answered = answerable(estimator, found.values)
    inputs = rows_of(found.values, answered)
    dist = estimator.predict_dist(inputs, samples)
    if hasattr(estimator, "classes_"):
        predictions = _classes(estimator.classes_, dist)
    elif samples is None and _is_conformal(estimator):
        terminal.line("intervals: conformal, by rows that fit set aside")
        bounds = estimator.predict_interval(inputs, coverage, method="conformal")
        predictions = _numbers(dist, bounds)
    else:
        predictions = _numbers(dist, dist.interval(coverage))
    if not answered.all():
        report_unanswered(terminal, int((~answered).sum()))
        predictions = _spread(predictions, answered)
    words = flagged_rows(estimator, found.values).words
    predictions = predictions.with_columns(pl.Series("status", words))
    flagged_rows(estimator, inputs).report(terminal)
    if output is None:
        terminal.table(_first_rows(predictions))
    else:
        write_table(output, predictions)
        name = "stdout" if output == STDOUT else output
        terminal.line(f"wrote {name}: {predictions.height:,} rows, {some(predictions.columns)}")


def _is_conformal(model: Estimator) -> bool:
    """Tell whether a model has thresholds of its own, the same for every row."""
    conformal = model.fitted_.conformal
    return conformal is not None and conformal.is_common


def _classes(classes: NDArray[Any], dist: AnyDistribution) -> pl.DataFrame:
    """Return the most probable class of each row, and the probability of every class."""
    import polars as pl

    columns = {"class": classes[dist.mode].tolist()}
    columns |= {f"p_{label}": dist.mean[:, k] for k, label in enumerate(classes)}
    return pl.DataFrame(columns)


def _numbers(dist: AnyDistribution, bounds: tuple[NDArray[Any], NDArray[Any]]) -> pl.DataFrame:
    """Return mean, std, low and high of each row, numbered for several targets."""
    import polars as pl

    figures = {"mean": dist.mean, "std": dist.std, "low": bounds[0], "high": bounds[1]}
    if len(dist.shape) == 1:
        return pl.DataFrame(figures)
    return pl.DataFrame(
        {
            f"{name}_{output}": values[:, output]
            for output in range(dist.shape[1])
            for name, values in figures.items()
        }
    )


def _spread(predictions: pl.DataFrame, answered: Booleans) -> pl.DataFrame:
    """Return a row for every row of the table, empty where there is no answer."""
    import numpy as np
    import polars as pl

    place = pl.DataFrame({"row": np.arange(len(answered))})
    known = predictions.with_columns(pl.Series("row", np.flatnonzero(answered)))
    return place.join(known, on="row", how="left", maintain_order="left").drop("row")


def _first_rows(predictions: pl.DataFrame) -> Table:
    left = predictions.height - SHOWN
    more = f"and {left:,} rows more; -o FILE writes all" if left > 0 else None
    table = new_table("Predictions", ["row", *predictions.columns], more)
    for number, row in enumerate(predictions.head(SHOWN).iter_rows()):
        cells = ["" if cell is None else _shown(cell) for cell in row]
        table.add_row(str(number), *cells)
    return table


def _shown(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
