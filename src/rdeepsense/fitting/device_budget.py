"""What a fit must know of the device that its network is for, without knowing any device.

A budget counts what a network would need once exported, and predicts as the exported network would.
The rooms that export lie above this one; the user's own object brings them in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.encoding import Encoding
from rdeepsense.fitting.need import Need
from rdeepsense.fitting.target import Target
from rdeepsense.networks import Architecture, Shape


@dataclass(frozen=True)
class TrainedNetwork:
    """A trained network with its scales, and rows to choose the rounding on."""

    network: StochasticNetwork
    input_scaler: Scaler
    target: Target
    target_scaler: Scaler | None
    rows: NDArray[Any]


@runtime_checkable
class DeviceBudget(Protocol):
    """A device's limits, and the form that networks have there."""

    def need(
        self,
        architecture: Architecture,
        shape: Shape,
        outputs: int,
        columns: int,
        encoding: Encoding | None,
    ) -> Need:
        """Count what a network of so many columns in its last layer needs, before any training.

        `encoding` makes rows of that shape of a table with categories or holes. An architecture
        that has no form there is refused with the reason.
        """

    def allows(self, need: Need) -> bool:
        """Tell whether that is within every limit."""

    def as_exported(
        self, dist: AnyDistribution, X: NDArray[Any], trained: TrainedNetwork
    ) -> AnyDistribution:
        """Return the predictions of X as the device makes them; `dist` is what torch says."""

    def words(self, need: Need) -> str:
        """Say what is needed."""

    def to_json(self) -> dict[str, Any]:
        """Return the limits as plain values."""
