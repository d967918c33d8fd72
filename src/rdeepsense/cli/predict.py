"""`rdeepsense predict`: a distribution for every row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense.cli.columns import some
from rdeepsense.cli.flagged import flagged_rows
from rdeepsense.cli.inference import load_model, model_inputs
from rdeepsense.cli.table import check_suffix, read_table, write_table
from rdeepsense.cli.terminal import Terminal, check_outputs, new_table
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from rdeepsense.distributions import AnyDistribution
    from rdeepsense.estimators.loading import Estimator

SHOWN = 10


def predict(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    table: Annotated[Path, typer.Argument(help="CSV or Parquet table with the model's inputs.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Table to write: .csv, .tsv or .parquet."),
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Probability that the interval low to high should hold.")
    ] = 0.9,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Passes with dropout on; by default one without.")
    ] = None,
) -> None:
    """Predict mean, std and an interval (or class probabilities) for every row.

    The status of a row is "ok", or says which inputs are beyond what the model was trained on.
    """
    import polars as pl

    terminal = Terminal()
    if not 0 < coverage < 1:
        raise InputError(f"--coverage {coverage}: must lie between 0 and 1")
    if output is not None:
        check_suffix(output)
        check_outputs({"--output": output}, inputs=(model, table))
    estimator = load_model(model)
    frame = read_table(table)
    inputs, extra = model_inputs(estimator, frame, [])
    predictions = _predictions(estimator, estimator.predict_dist(inputs, samples), coverage)
    flagged = flagged_rows(estimator, inputs)
    predictions = predictions.with_columns(pl.Series("status", flagged.words))
    if extra:
        terminal.line(f"{len(extra)} columns not used: {some(extra)}")
    flagged.report(terminal)
    if output is None:
        terminal.table(_first_rows(predictions))
    else:
        write_table(output, predictions)
        terminal.line(f"wrote {output}: {predictions.height:,} rows, {some(predictions.columns)}")


def _predictions(model: Estimator, dist: AnyDistribution, coverage: float) -> pl.DataFrame:
    """Return one row per row: mean, std, low, high (numbered for several targets), or classes."""
    import polars as pl

    if hasattr(model, "classes_"):
        columns = {"class": model.classes_[dist.mode].tolist()}
        columns |= {f"p_{label}": dist.mean[:, k] for k, label in enumerate(model.classes_)}
        return pl.DataFrame(columns)
    low, high = dist.interval(coverage)
    figures = {"mean": dist.mean, "std": dist.std, "low": low, "high": high}
    if len(dist.shape) == 1:
        return pl.DataFrame(figures)
    return pl.DataFrame(
        {
            f"{name}_{output}": values[:, output]
            for output in range(dist.shape[1])
            for name, values in figures.items()
        }
    )


def _first_rows(predictions: pl.DataFrame) -> Table:
    left = predictions.height - SHOWN
    more = f"and {left:,} rows more; -o FILE writes all" if left > 0 else None
    table = new_table("Predictions", ["row", *predictions.columns], more)
    for number, row in enumerate(predictions.head(SHOWN).iter_rows()):
        cells = [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
        table.add_row(str(number), *cells)
    return table
