"""Work in pieces that do not depend on each other, each with its result or its failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rdeepsense.errors import RDeepSenseError

Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)


class Work(Protocol[Made]):
    """A piece of work that takes long; other processes and machines must be able to take it."""

    def run(self) -> Made:
        """Do it."""


@dataclass(frozen=True)
class Failure:
    """The reason why a piece of work has no result, on one line."""

    reason: str


class Engine(Protocol):
    """What does pieces of work: processes of this machine, or machines of a cluster."""

    def run_each(self, work: Sequence[Work[Result]]) -> Iterator[tuple[int, Result | Failure]]:
        """Yield the number of each piece and its result as they finish."""


def attempt(work: Work[Result]) -> Result | Failure:
    """Return the result of a piece of work, or the failure of this piece alone."""
    try:
        return work.run()
    except (RDeepSenseError, ValueError, ArithmeticError) as error:
        return Failure(" ".join(str(error).split()) or type(error).__name__)
