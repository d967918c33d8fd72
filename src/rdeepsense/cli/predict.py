"""`rdeepsense predict`: a distribution for every row of a table, or of a folder of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rdeepsense._storage import Remote, path_or_url
from rdeepsense.cli.engine import Address, EngineName, EngineOption, engine_asked
from rdeepsense.cli.errors import in_options
from rdeepsense.cli.inference import load_model
from rdeepsense.cli.options import TABLE, MissingMarks, Overwrite, Quiet
from rdeepsense.cli.terminal import STDOUT, Terminal, check_outputs
from rdeepsense.cli.window_log import predict_log, reads_logs
from rdeepsense.cli.writing import check_suffix
from rdeepsense.errors import InputError
from rdeepsense.predict.columns import FURTHER, STATUS, Wanted

OPTIONS = {
    "coverage": "--coverage",
    "quantiles": "--quantiles",
    "with": "--with",
    "accept": "--accept",
    "id": "--id",
    "memory": "--memory",
    "runner": "--runner",
}


class RunnerName(StrEnum):
    """What may run a model."""

    auto = "auto"
    c = "C"
    torch = "torch"


def predict(
    model: Annotated[str, typer.Argument(help="Model file written by fit; a path or a URL.")],
    table: Annotated[
        str,
        typer.Argument(help=f"Table with the model's inputs: {TABLE}; or a folder of Parquet."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            help="Table to write: .csv, .tsv or .parquet; - for CSV on stdout. Of a folder, "
            "another folder.",
        ),
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Probability that the interval low to high should hold.")
    ] = 0.9,
    quantiles: Annotated[
        str | None, typer.Option(help="Further columns, with commas, such as 0.05,0.5,0.95.")
    ] = None,
    further: Annotated[
        str,
        typer.Option(
            "--with", help=f"Further columns, with commas, of: {', '.join(FURTHER)}; or none."
        ),
    ] = STATUS,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="COLUMN", help="Column to pass through; repeatable."),
    ] = None,
    accept: Annotated[
        float, typer.Option(help="Share of the validation rows that the column reject accepts.")
    ] = 0.9,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Passes with dropout on; by default one without.")
    ] = None,
    memory: Annotated[
        int, typer.Option(min=1, help="MiB that the process may take for a large table or folder.")
    ] = 512,
    runner: Annotated[
        RunnerName, typer.Option(help="What runs the model over many rows; auto is the faster.")
    ] = RunnerName.auto,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    missing_mark: MissingMarks = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Predict mean, std and an interval (or class probabilities) for every row.

    The status of a row is "ok", or says which inputs are beyond what the model was trained on. A
    row that lacks a value which no training row lacked has no answer, and the status "missing".

    A large table is read and written piece by piece. Of a folder every Parquet file becomes one of
    the same name, whole or not at all; the same command goes on after a stop.
    """
    # Late: --help of any command answers without numpy.
    from rdeepsense.cli.predict_folder import FolderOptions, predict_folder
    from rdeepsense.cli.predict_stream import is_large, predict_stream
    from rdeepsense.cli.predict_table import Asked, predict_table

    with in_options(OPTIONS):
        wanted = Wanted(coverage, _levels(quantiles), _words(further), samples, accept)
        source, target = path_or_url(table), None if output is None else path_or_url(output)
        asked = Asked(model, wanted, tuple(ids or ()), tuple(missing_mark or ()))
        terminal = Terminal(quiet, STDOUT if target == STDOUT else None)
        if reads_logs(model):
            plain = Wanted(coverage, samples=samples)
            if wanted != plain or ids or engine is not EngineName.local or address is not None:
                raise InputError(
                    "the model reads windows of a log: --quantiles, --with, --accept, --id, "
                    "--engine and --address are for tables"
                )
            log, file = _files(model, source, target, overwrite)
            predict_log(terminal, load_model(model), log, file, coverage, samples, missing_mark)
            return
        if isinstance(source, Remote) or (source.is_dir() and any(source.glob("*.parquet"))):
            if missing_mark:
                raise InputError("--missing-mark: is for tables; Parquet files have empty cells")
            away = engine is not EngineName.local or address is not None
            place = engine_asked(engine, address, None) if away else None
            options = FolderOptions(memory, runner.value, place, overwrite, quiet)
            predict_folder(terminal, asked, source, target, options)
            return
        if source.is_dir():
            raise InputError(f"{source}: is a folder, not a table; no *.parquet is in it")
        if engine is not EngineName.local or address is not None:
            raise InputError("--engine and --address are for a folder of Parquet files")
        read, file = _files(model, source, target, overwrite)
        if is_large(read):
            predict_stream(terminal, asked, read, file, memory, runner.value, quiet)
        else:
            predict_table(terminal, asked, read, file)


def _files(
    model: str, source: Path | Remote, target: Path | Remote | None, overwrite: bool
) -> tuple[Path, Path | None]:
    """Refuse URLs where files are needed, and outputs that are there or cannot be written."""
    if isinstance(source, Remote):
        raise InputError(f"{source}: a log must be a file of this machine")
    if isinstance(target, Remote):
        raise InputError(f"--output {target}: is for a folder of Parquet; give a file")
    if target is not None:
        check_suffix(target)
        inputs = (source,) if isinstance(path_or_url(model), Remote) else (Path(model), source)
        check_outputs({"--output": target}, inputs, overwrite, stream="--output")
    return source, target


def _levels(quantiles: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(level) for level in quantiles.split(",")) if quantiles else ()
    except ValueError:
        raise InputError(
            f"--quantiles {quantiles}: numbers with commas are needed, such as 0.05,0.95"
        ) from None


def _words(further: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in further.split(",") if word.strip())
    return () if words == ("none",) else words
