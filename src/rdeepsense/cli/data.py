"""`rdeepsense data`: download the published data of a task, and make one compact file of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdeepsense._progress import long_progress
from rdeepsense.cli.terminal import Terminal, make_folder
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from rdeepsense._progress import Progress
    from rdeepsense.paper.tasks.catalogue import Entry

data = typer.Typer(help="Get the data of the paper's tasks.", no_args_is_help=True)

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
