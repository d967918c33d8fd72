"""The four tasks of the paper by name, with their published data and their simulators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rdeepsense.errors import InputError
from rdeepsense.paper.tasks import bpest, gassen, hhar, nycommute, task
from rdeepsense.paper.tasks.task import Task, kl_from_truth

# --------------------------------------------------------------------------------------------------
# Simulated tasks with known conditional distributions
#
# This is what runs where no data is at hand. Everything made from it is to be labelled simulated.
# --------------------------------------------------------------------------------------------------

SIMULATORS: dict[str, Callable[[int, int], Task]] = {  # (rows, seed) -> the task
    "BPEst": bpest.simulate,
    "NYCommute": nycommute.simulate,
    "GasSen": gassen.simulate,
    "HHAR": hhar.simulate,
}

__all__ = ["SIMULATORS", "kl_from_truth"]


# --------------------------------------------------------------------------------------------------
# The four tasks by name, and the sources of their data
#
# The addresses are those of the publishers. No checksums are given: the first download's is
# recorded.
# --------------------------------------------------------------------------------------------------

UCI = "https://archive.ics.uci.edu/static/public"
TLC = "https://d37ci6vzurychx.cloudfront.net"
SIMULATED_ROWS = 20_000


class MissingDataError(InputError):
    """A folder without the files of a task."""

    def __init__(self, message: str, task: str) -> None:
        super().__init__(message)
        self.task = task


@dataclass(frozen=True)
class Entry:
    """One task: what it is, where it is published, and the original files that its loader reads."""

    name: str
    title: str
    addresses: tuple[str, ...]  # what is a .zip is unpacked
    originals: tuple[str, ...]  # patterns of the end of a path, as in an archive
    load: Callable[..., Task]  # from a folder; some have options, such as `drop_corrupted`
    needed: tuple[str, ...] = ()  # others to unpack, which the loader wants beside them

    @property
    def folder(self) -> str:
        """The name of the folder of its data, and of its prepared file."""
        return self.name.lower()


_ENTRIES = (
    Entry(
        "BPEst",
        "arterial blood pressure from finger PPG",
        (f"{UCI}/340/cuff+less+blood+pressure+estimation.zip",),
        ("Part_*.mat", "*.csv"),
        bpest.load,
    ),
    Entry(
        "NYCommute",
        "minutes of a taxi trip in New York",
        (
            f"{TLC}/trip-data/yellow_tripdata_2017-01.parquet",
            f"{TLC}/trip-data/green_tripdata_2017-01.parquet",
            f"{TLC}/misc/taxi_zones.zip",
        ),
        ("yellow*.parquet", "yellow*.csv", "green*.parquet", "green*.csv"),
        nycommute.load,
        ("taxi_zones.shp", "taxi_zones.dbf"),
    ),
    Entry(
        "GasSen",
        "concentrations of two gases from 16 sensors",
        (f"{UCI}/322/gas+sensor+array+under+dynamic+gas+mixtures.zip",),
        ("ethylene_CO.txt",),
        gassen.load,
        ("ethylene_methane.txt",),
    ),
    Entry(
        "HHAR",
        "activity from accelerometer and gyroscope",
        (f"{UCI}/344/heterogeneity+activity+recognition.zip",),
        tuple(
            f"Activity recognition exp/{on}_{sensor}.csv"
            for on in ("Phones", "Watch")
            for sensor in ("accelerometer", "gyroscope")
        ),
        hhar.load,
    ),
)
NAMES = tuple(entry.name for entry in _ENTRIES)


def find(name: str) -> Entry:
    """Return the task of that name, in capitals or not."""
    for entry in _ENTRIES:
        if entry.name.lower() == name.lower():
            return entry
    raise InputError(f"task {name!r} is unknown; accepted: {', '.join(NAMES)}")


def load(name: str, data: Path | None = None, rows: int = SIMULATED_ROWS, seed: int = 0) -> Task:
    """Return a task: `rows` simulated ones without `data`, else all that the folder holds of it.

    In the folder, a prepared file (`nycommute.parquet`) comes before original ones, which may lie
    in a folder of their own (`nycommute/`) or in `data` itself.
    """
    entry = find(name)
    if data is None:
        return SIMULATORS[entry.name](rows, seed)
    ready = prepared_path(entry, data)
    return task.read(ready) if ready.is_file() else load_originals(entry, data)


def prepared_path(entry: Entry, folder: Path) -> Path:
    """Return where the prepared file of a task lies in a folder."""
    return folder / f"{entry.folder}.parquet"


def load_originals(entry: Entry, data: Path, **options: bool) -> Task:
    """Return a task from the files as published; `options` are its loader's own."""
    patterns = [Path(pattern).name for pattern in entry.originals]
    folders = (data / entry.folder, data)
    for folder in folders:
        if any(any(folder.glob(pattern)) for pattern in patterns):
            return entry.load(folder, **options)
    raise MissingDataError(
        f"no data of {entry.name}: looked for {prepared_path(entry, data)}, and in "
        f"{folders[0]} and {folders[1]} for {', '.join(patterns)}",
        entry.name,
    )
