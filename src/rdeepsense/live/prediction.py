"""What a live model says about one row, and what it keeps of the row until its label comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from rdeepsense.adaptation.rates import Outlook
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.distributions import AnyDistribution
from rdeepsense.status import Status

Interval = tuple[Floats, Floats]


@dataclass(frozen=True)
class Prediction:
    """The answer to one row.

    `distribution` is of one value, or of one for each output. `interval` is (low, high), each of
    the target's shape; for classes it tells which of them the set holds. `ticket` names the row
    when its label comes.
    """

    distribution: AnyDistribution
    interval: Interval | Booleans
    status: Status
    ticket: int


@dataclass(frozen=True)
class Pending:
    """A row that waits for its label: what the model made of it, and what was said of it."""

    row: NDArray[Any]  # (1, ...), as the network takes it
    frozen: AnyDistribution  # of the row, without what was learnt in the stream
    psi: Floats
    outlook: Outlook
    interval: tuple[NDArray[Any], ...]
