"""Cells: pieces of a long run, each a JSON file that is written once it is done."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import rdeepsense
from rdeepsense._files import write_whole
from rdeepsense._records import Record, mapping
from rdeepsense.engines import Engine, Failure
from rdeepsense.errors import InputError, RDeepSenseError

# --------------------------------------------------------------------------------------------------
# The machine that figures were computed on
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine(Record):
    """A computer, without its name or any path on it."""

    processor: str
    system: str
    cores: int | None

    @classmethod
    def this(cls) -> Self:
        """Return the machine that runs this."""
        return cls(platform.machine(), platform.system(), os.cpu_count())


# --------------------------------------------------------------------------------------------------
# The version of the figures
# --------------------------------------------------------------------------------------------------

# Raise REVISION when a change of the library changes the figures of finished cells, as the records
# of fits in tests/golden show. Cells of another version are computed again.
REVISION = 1
VERSION = f"{rdeepsense.__version__}.{REVISION}"


# --------------------------------------------------------------------------------------------------
# The file of a finished cell, with a checksum
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")
CHECKSUM = "sha256"


def write_cell(path: Path, key: Mapping[str, object], record: Mapping[str, object]) -> None:
    """Write what a cell found beside its key, and the checksum over both."""
    # Through JSON once, so that the checksum is over what a reader will find.
    content = json.loads(json.dumps({"key": key, **record}, allow_nan=False))
    signed = {CHECKSUM: _checksum(content), **content}
    write_whole(path, json.dumps(signed, indent=1, allow_nan=False) + "\n")


def read_cell(path: Path, key: Mapping[str, object], parse: Callable[[object], T]) -> T | None:
    """Return what `parse` makes of the cell with this key; None where there is no sound one.

    A damaged file is named in a warning and kept beside under another name. Files of early
    versions have no checksum; those that `parse` accepts count as sound.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return parse(_verified(data, key))
    except (ValueError, RecursionError) as error:
        aside = _set_aside(path)
        warnings.warn(
            f"{path}: is damaged ({error}); it is kept as {aside.name} and computed again",
            stacklevel=2,
        )
        return None


def _verified(data: bytes, key: Mapping[str, object]) -> dict[str, object]:
    """Return the record in a file whose checksum, if it has one, and key are right."""
    content = dict(mapping(json.loads(data), "cell"))
    signed, said = CHECKSUM in content, content.pop(CHECKSUM, None)
    found = _checksum(content)  # refuses NaN and infinity in files without one, too
    if signed and said != found:
        raise InputError("its checksum is not that of its content")
    if content.pop("key", None) != key:
        raise InputError("it is of another cell")
    return content


def _checksum(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _set_aside(path: Path) -> Path:
    """Rename a file to the first `NAME.damaged`, `NAME.damaged-2`, ... that is free."""
    aside, number = path.with_name(f"{path.name}.damaged"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{number}")
    path.rename(aside)
    return aside


# --------------------------------------------------------------------------------------------------
# Cells as pieces of work for an engine; the worker writes the file
#
# The folder has the same path on every machine that takes part. A cell that is finished is in its
# file before anybody is told so: nothing that is lost afterwards, the worker, its machine or the
# program that gave out the work, takes it along.
# --------------------------------------------------------------------------------------------------

Found = TypeVar("Found")


class Cell(Protocol[Found]):
    """A piece of an experiment that is known by its key, and kept in a file of a folder."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def key(self) -> Mapping[str, object]:
        """Everything that the figures follow from."""

    def run(self) -> Found:
        """Do it; takes long."""

    def read(self, folder: Path) -> Found | None:
        """Return what was found and kept; None without it."""

    def write(self, folder: Path, found: Found) -> None:
        """Keep what was found."""


@dataclass(frozen=True)
class KeptWork(Generic[Found]):
    """A cell to run and to write into a folder, on whatever machine."""

    cell: Cell[Found]
    folder: Path

    def run(self) -> Found:
        """Run the cell and write it; one that is there by now is read.

        A cell is begun again where its worker was lost, perhaps right after it had written.
        """
        kept = self.cell.read(self.folder)
        if kept is not None:
            return kept
        check_key(self.cell)
        found = self.cell.run()
        self.cell.write(self.folder, found)
        return found


def run_kept(
    cells: Sequence[Cell[Found]], folder: Path, engine: Engine
) -> Iterator[tuple[int, Found | Failure]]:
    """Yield the number of each cell and what it found, as they finish; each is written then."""
    place = folder.resolve()  # other processes may stand elsewhere
    work: list[KeptWork[Found]] = [KeptWork(cell, place) for cell in cells]
    yield from engine.run_each(work)


def check_key(cell: Cell[Any]) -> None:
    """Refuse to run a cell where it is not what it was where it was given out.

    Its figures would be filed under code, libraries or data that they do not follow from.
    """
    given, here = cell.key, replace(cell).key  # anew: the key may have come along with the cell
    other = [name for name in here if here[name] != given.get(name)]
    if other:
        raise RDeepSenseError(
            f"{platform.node()} has other {' and '.join(other)} than the machine that gave out "
            "the work; install the same version, and share the same data, on all of them"
        )
