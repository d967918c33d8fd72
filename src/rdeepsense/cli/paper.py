"""`rdeepsense reproduce`, `benchmark` and `data`: the paper's evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense._files import write_whole
from rdeepsense._progress import long_progress
from rdeepsense.cli.options import (
    Address,
    EngineName,
    EngineOption,
    Jobs,
    engine_asked,
    plain_typer,
    widths_of,
)
from rdeepsense.cli.terminal import (
    Terminal,
    finished_cells,
    make_folder,
    new_table,
    rich_table,
    stoppable,
    write_json,
)
from rdeepsense.errors import InputError, RDeepSenseError, require

if TYPE_CHECKING:
    from rdeepsense._progress import Progress
    from rdeepsense.engines import Engine
    from rdeepsense.paper.drift import DriftResults
    from rdeepsense.paper.run import StudyOutcome
    from rdeepsense.paper.tasks.catalogue import Entry
    from rdeepsense.paper.uci import BenchmarkResults


# --------------------------------------------------------------------------------------------------
# `rdeepsense data`: download and convert the published data of a task
# --------------------------------------------------------------------------------------------------

data = plain_typer(help="Get the data of the paper's tasks.", no_args_is_help=True)

TaskName = Annotated[str, typer.Argument(help="BPEst, NYCommute, GasSen or HHAR.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]


@data.command()
def fetch(
    task: TaskName,
    out: Annotated[Path, typer.Option(help="Folder; the files go to OUT/TASK.")] = Path("data"),
    sha256: Annotated[
        list[str] | None,
        typer.Option(help="Checksum, or FILE=CHECKSUM where there are several files; repeatable."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Download the published files of a task; a download that was stopped goes on where it was.

    The checksum of each file is recorded beside it at its first download, and compared at later
    ones. Archives are unpacked.
    """
    from rdeepsense.paper.tasks import catalogue

    entry = catalogue.find(task)
    run_fetch(entry, entry.addresses, out, sha256 or [], Terminal(quiet), long_progress(quiet))


def run_fetch(
    entry: Entry,
    addresses: tuple[str, ...],
    out: Path,
    sha256: list[str],
    terminal: Terminal,
    progress: Progress | None,
) -> None:
    """Do everything that `data fetch` does."""
    from rdeepsense.paper.tasks.fetch import fetch as download
    from rdeepsense.paper.tasks.fetch import unpack

    names = [address.rsplit("/", 1)[-1] for address in addresses]
    wanted = _checksums(sha256, names)
    make_folder(out)
    folder = out / entry.folder
    folder.mkdir(exist_ok=True)
    for address, name in zip(addresses, names, strict=True):
        terminal.line(f"from {address}")
        path = folder / name
        found = download(address, path, wanted.get(name), progress)
        terminal.line(f"{path}: {path.stat().st_size / 1e6:,.1f} MB, SHA-256 {found}")
        if path.suffix.lower() == ".zip":
            files = unpack(path, folder, entry.originals + entry.needed)
            if not files:
                raise InputError(f"{path}: holds none of {', '.join(entry.originals)}")
            terminal.line(f"unpacked {', '.join(file.name for file in files)}")


@data.command()
def prepare(
    task: TaskName,
    data: Annotated[Path, typer.Option(help="Folder of the published files, as fetch makes it.")],
    out: Annotated[Path, typer.Option(help="Folder for the file TASK.parquet.")],
    drop_corrupted: Annotated[
        bool,
        typer.Option(
            "--drop-corrupted",
            help="NYCommute: keep only trips of 1 to 180 minutes, inside a box around the city, "
            "below 100 mph.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write one compact Parquet file with the inputs, targets and groups of a task."""
    from rdeepsense.paper.tasks import catalogue
    from rdeepsense.paper.tasks import task as prepared

    entry = catalogue.find(task)
    options: dict[str, bool] = {}
    if drop_corrupted:
        if entry.name != "NYCommute":
            raise InputError(f"--drop-corrupted: is for NYCommute, not for {entry.name}")
        options["drop_corrupted"] = True
    make_folder(out)
    with fetch_hint(data):
        loaded = catalogue.load_originals(entry, data, **options)
    path = catalogue.prepared_path(entry, out)
    prepared.write(loaded, path)
    terminal = Terminal(quiet)
    terminal.line(f"source    {loaded.source}")
    terminal.line(
        f"task      {len(loaded.X):,} rows, {len(loaded.features)} inputs, "
        f"{len(loaded.targets)} targets"
    )
    terminal.line(f"wrote {path} ({path.stat().st_size / 1e6:,.1f} MB)")


@contextmanager
def fetch_hint(data: Path | None) -> Iterator[None]:
    """Say with the error of a folder without data which command fills it."""
    from rdeepsense.paper.tasks.catalogue import MissingDataError

    try:
        yield
    except MissingDataError as error:
        raise InputError(
            f"{error}; `rdeepsense data fetch {error.task} --out {data}` downloads what is "
            "published"
        ) from error


def _checksums(given: list[str], names: list[str]) -> dict[str, str]:
    """Return the checksum of each file that one was given for."""
    if len(given) == len(names) == 1 and "=" not in given[0]:
        return {names[0]: given[0]}
    checksums = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or name not in names:
            raise InputError(f"--sha256 {text!r}: give FILE=CHECKSUM, FILE of {', '.join(names)}")
        checksums[name] = value
    return checksums


# --------------------------------------------------------------------------------------------------
# `rdeepsense reproduce`: the paper's evaluation, resumable
# --------------------------------------------------------------------------------------------------


def reproduce(
    task: Annotated[
        str, typer.Argument(help="BPEst, NYCommute, GasSen, HHAR, several with commas, or all.")
    ],
    data: Annotated[
        Path | None, typer.Option(help="Folder with the original files; else data is simulated.")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="quick: minutes on two cores. paper: three layers of 500, all rows.")
    ] = "quick",
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names with commas, such as RDeepSense-paper,SSP-5-paper,MCDrop-20-paper; else "
            "all of the paper at its k, the tuned MCDrop-20 and the automatic RDeepSense."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for cells, results and report.")] = Path(
        "reproduction"
    ),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes, of one thread each; else up to 4.")
    ] = None,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Repeat the paper's tables and figures and say which of its claims hold.

    Writes results.json, one PNG and SVG for each figure, report.html and report.md. Each finished
    cell (one training of a family of methods or of one alpha on a task, the timing) is a file under
    OUT/cells: a run that was stopped goes on where it was, and what is there is not run again. On a
    cluster DATA and OUT are folders that all machines see under the same paths.
    """
    require("matplotlib", "report")
    from rdeepsense.paper.report import write
    from rdeepsense.paper.run import RESULTS, default_engine, run
    from rdeepsense.paper.study import preset as preset_named
    from rdeepsense.paper.study import tasks_named
    from rdeepsense.paper.tables import verdicts

    tasks, size = tasks_named(task), preset_named(preset)
    if data is not None and not data.is_dir():
        raise InputError(f"--data {data}: there is no such folder")
    where = engine_asked(engine, address, jobs, default_engine().jobs)
    make_folder(out)
    terminal = Terminal(quiet)
    chosen = None if methods is None else methods.split(",")
    with stoppable(partial(finished_cells, out)):
        with fetch_hint(data):
            outcome = run(tasks, size, out, data, chosen, seed, where, quiet)
        terminal.line(f"{outcome.ran} cells run now, {outcome.cells} in all")
        found = verdicts(outcome.results.claims, list(outcome.results.tasks))
        table = new_table("What holds", ["claim", *found.header[2:]])
        for claim, _, *row in found.rows:
            table.add_row(claim, *("?" if said == "not decidable" else said for said in row))
        terminal.table(table)
        terminal.line(found.caption.replace("not decidable", "not decidable (?)"))
        report_files(terminal, [out / RESULTS, *write(outcome.results, out)])
    check_complete(outcome)


def report_files(terminal: Terminal, files: list[Path]) -> None:
    """Print what was written; of the figures, where they are and how many files."""
    figures = [file for file in files if file.parent.name == "figures"]
    for file in files:
        if file not in figures:
            terminal.line(f"wrote {file}")
    if figures:
        terminal.line(f"wrote {figures[0].parent}: {len(figures)} files, a PNG and SVG of each")


def check_complete(outcome: StudyOutcome) -> None:
    """Raise an error for cells that failed, once all else is written."""
    if outcome.failed:
        label, error = outcome.failed[0]
        raise RDeepSenseError(
            f"{len(outcome.failed)} cells failed and will be tried again by the same command; the "
            f"first, {label}: {error}"
        )


# --------------------------------------------------------------------------------------------------
# `rdeepsense benchmark drift`: models in production, resumable
# --------------------------------------------------------------------------------------------------

DEFAULT = ("gas", "people", "pressure")
PICTURE = "gas-stream"


def drift(
    data: Annotated[Path, typer.Option(help="Folder with gassen, har and bpest.")],
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="gas, people, pressure; repeatable; else these three. pressure-by-record, easier."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder for cells and results.")] = Path("drift"),
    jobs: Jobs = None,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Compare frozen and live models on sensors that drift and people never trained on.

    gas: sensors of UCI 270, batches 1 to 6, then a stream of 8 and 9. people: six users of UCI
    HAPT. pressure: records of the UCI blood pressure data. DATA has gassen/uci270_drift.parquet,
    har/hapt.parquet, bpest/waves.parquet and bpest/windows.parquet.

    Writes results.json, report.html and, of gas, a picture of one stream. Each finished cell
    (study, seed) is a file under OUT/cells; a run that was stopped goes on where it was. On a
    cluster DATA and OUT are folders that all machines see under the same paths.
    """
    with stoppable(partial(finished_cells, out)):
        where = engine_asked(engine, address, jobs)
        run_drift(data, list(dict.fromkeys(task or DEFAULT)), seeds, out, where, quiet)


def run_drift(
    data: Path,
    tasks: list[str],
    seeds: int,
    out: Path,
    engine: Engine | None = None,
    quiet: bool = False,
) -> DriftResults:
    """Do everything that `benchmark drift` does; return what it wrote to results.json."""
    require("matplotlib", "report")
    from rdeepsense.engines import Local
    from rdeepsense.pages.pictures import save
    from rdeepsense.paper.drift import (
        STUDIES,
        cells_of,
        drift_page,
        results_of,
        run_cells,
        tables_of,
    )
    from rdeepsense.reporting.replay import replay_figure

    terminal = Terminal(quiet)
    cells = cells_of(data, tasks, seeds)
    make_folder(out)
    outcome = run_cells(cells, out / "cells", engine or Local(), long_progress(quiet))
    terminal.line(f"{outcome.ran} cells run now, {len(outcome.done) - outcome.ran} found finished")
    if not outcome.done:
        raise RDeepSenseError(f"no cell could be run; the first: {outcome.failed[0][1].reason}")
    results = results_of(outcome.done)
    tables = tables_of(results)
    kept = (trial.stream for _, trial in outcome.done if trial.stream is not None)
    first = next(kept, None)
    stream, unit = None if first is None else first.replayed(), STUDIES["gas"].unit
    write_json(out / "results.json", results.to_json())
    write_whole(out / "report.html", drift_page(results, tables, stream, unit))
    written = [out / "results.json", out / "report.html"]
    if stream is not None:
        title = "Gas sensors months later, a label for every tenth row"
        written += save(replay_figure(stream, title, unit), out / PICTURE)
    for table in tables:
        terminal.table(rich_table(table))
    for path in written:
        terminal.line(f"wrote {path}")
    if outcome.failed:
        cell, failure = outcome.failed[0]
        raise RDeepSenseError(
            f"{len(outcome.failed)} cells failed and will be tried again by the same command; the "
            f"first, {cell.task} seed {cell.seed}: {failure.reason}"
        )
    return results


# --------------------------------------------------------------------------------------------------
# `rdeepsense benchmark uci`: methods on fixed splits, resumable
# --------------------------------------------------------------------------------------------------

METHODS = "RDeepSense,RDeepSense-MC20,MCDrop-20,MCDrop-20-paper,SSP-5"
MOST_SPLITS = 9_999

benchmark = plain_typer(
    help="Compare methods on data sets with fixed splits, and models in production.",
    no_args_is_help=True,
)
benchmark.command()(drift)


@benchmark.callback()
def _group() -> None:
    """Compare methods on data sets with fixed splits, and models in production."""


@benchmark.command()
def uci(
    data: Annotated[Path, typer.Option(help="Folder with one .npz file for each data set.")],
    datasets: Annotated[
        str | None, typer.Option(help="Names, or how they begin, such as boston,yacht; else all.")
    ] = None,
    splits: Annotated[
        str | None, typer.Option(help="Which splits, such as 0-4 or 0,3,7-9; else all.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="RDeepSense, RDeepSense-MCk, RDeepSense-quick, MCDrop-k, MCDrop-k-paper, SSP-k, "
            f"GP, CatBoost, NGBoost; else {METHODS} and, where gpytorch is installed, GP."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for cells and results.")] = Path("benchmark"),
    jobs: Jobs = None,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    hidden: Annotated[
        str, typer.Option(help="Widths of the hidden layers, or auto: methods that may choose do.")
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Run the methods on every split and write results.json and report.html.

    A data set is a file NAME.npz with the arrays x (N, d), y (N,) and test_mask (splits,
    ceil(N / 8)): for each split the packed bits of its rows, 1 for a test row, as
    np.packbits(is_test, axis=1) makes them. No pickles.

    Each finished cell (data set, split, family of methods) is a file under OUT/cells; a run that
    was stopped goes on where it was, and what is there is not run again. Other data, settings or
    code make other cells. On a cluster OUT is a folder that all machines see under the same path.
    """
    chosen = methods or (METHODS + (",GP" if find_spec("gpytorch") else ""))
    with stoppable(partial(finished_cells, out)):
        run_uci(
            data=data,
            datasets=_words(datasets),
            splits=_numbers(splits),
            methods=chosen.split(","),
            out=out,
            engine=engine_asked(engine, address, jobs),
            hidden=widths_of(hidden),
            seed=seed,
            quiet=quiet,
        )


def run_uci(
    data: Path,
    datasets: list[str] | None,
    splits: list[int] | None,
    methods: list[str],
    out: Path,
    engine: Engine | None = None,
    hidden: tuple[int, ...] | str = "auto",
    seed: int = 0,
    quiet: bool = False,
    epochs: int | None = None,
) -> BenchmarkResults:
    """Do everything that `benchmark uci` does; return what it wrote to results.json."""
    require("matplotlib", "report")
    from rdeepsense.comparison.methods import parse_all
    from rdeepsense.engines import Local
    from rdeepsense.paper.uci import (
        benchmark_page,
        cells_of,
        find,
        load,
        results_of,
        run_cells,
        tables_of,
    )

    terminal = Terminal(quiet)
    chosen = parse_all(methods)
    files = find(data, datasets)
    cells = cells_of([load(file) for file in files], splits, chosen, hidden, seed, epochs)
    make_folder(out)
    terminal.line(f"{len(files)} data sets, {len(chosen)} methods, {len(cells)} cells")
    outcome = run_cells(cells, out / "cells", engine or Local(), long_progress(quiet))
    terminal.line(f"{outcome.ran} cells run now, {len(outcome.done) - outcome.ran} found finished")
    if not outcome.done:
        raise RDeepSenseError(f"no cell could be run; the first: {outcome.failed[0][1].reason}")
    results = results_of(outcome, chosen, hidden, seed)
    tables = tables_of(results)
    write_json(out / "results.json", results.to_json())
    write_whole(out / "report.html", benchmark_page(results, tables))

    for table in tables:
        terminal.table(rich_table(table))
    for row in results.published:
        terminal.line(f"{row.method}: {row.source} ({row.remark})")
    for warned in results.warnings:
        terminal.line(f"{warned.family} warned in {warned.cells} cells: {warned.example}")
    for path in (out / "results.json", out / "report.html"):
        terminal.line(f"wrote {path}")
    if outcome.failed:
        cell, failure = outcome.failed[0]
        raise RDeepSenseError(
            f"{len(outcome.failed)} cells failed and will be tried again by the same command; the "
            f"first, {cell.family} on {cell.data.name} split {cell.split}: {failure.reason}"
        )
    return results


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",")]


def _numbers(text: str | None) -> list[int] | None:
    """Read 0,3,7-9 as [0, 3, 7, 8, 9]."""
    if text is None:
        return None
    numbers: list[int] = []
    for word in text.split(","):
        first, dash, last = (part.strip() for part in word.partition("-"))
        if not first.isdecimal() or (dash and not (last.isdecimal() and int(last) >= int(first))):
            raise InputError(f"--splits {text!r}: give numbers or ranges, such as 0-4 or 0,3,7-9")
        if int(last or first) > MOST_SPLITS:
            raise InputError(f"--splits {text!r}: beyond {MOST_SPLITS}, more than any data set has")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
