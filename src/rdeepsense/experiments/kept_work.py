"""Cells as pieces of work for an engine: whoever runs a cell writes its file.

The folder has the same path on every machine that takes part. A cell that is finished is in its
file before anybody is told so: nothing that is lost afterwards, the worker, its machine or the
program that gave out the work, takes it along.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from rdeepsense.engines import Engine, Failure
from rdeepsense.errors import RDeepSenseError

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
