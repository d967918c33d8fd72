"""What every step of a graph is: the values that it reads, and the one that it makes.

A value is a flat vector of numbers for each row; what its axes are, a step knows that reads it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError
from rdeepsense.modelfile.schema import Kind, whole

MOST_NUMBERS = 1 << 22  # of one value, so that a file cannot ask for more memory than that
COUNT = whole(1, MOST_NUMBERS)
PLACE = whole(0, MOST_NUMBERS)


@dataclass(frozen=True)
class Node(ABC):
    """A step; `reads` are the numbers of values, of which 0 is the row itself."""

    reads: tuple[int, ...]

    kind: ClassVar[str]
    fields: ClassVar[Mapping[str, Kind]] = {}  # beside the arrays, as a file's JSON holds them
    arrays: ClassVar[Mapping[str, int]] = {}  # their numbers of axes

    @abstractmethod
    def size(self, *sizes: int) -> int:
        """Return how many numbers come out; refuse what does not fit what is read."""

    @abstractmethod
    def run(self, *values: Floats) -> Floats:
        """Compute (rows, size) of what is read, (rows, sizes)."""

    def multiply_adds(self, *sizes: int) -> int:
        """Count those of one row."""
        return 0

    def need(self, fits: bool, what: str) -> None:
        """Refuse a step that does not fit."""
        if not fits:
            raise InputError(f"a step {self.kind!r} does not fit: {what}")
