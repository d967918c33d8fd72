"""What to train: the specification of a fit, and the budget of a device."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from numpy.typing import NDArray

from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import AnyDistribution
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.encoding import Encoding
from rdeepsense.engines import Engine
from rdeepsense.fitting.passes import Passes
from rdeepsense.fitting.records import Candidate, Criterion, DeviceCost
from rdeepsense.fitting.target import Target
from rdeepsense.networks import Architecture, Shape
from rdeepsense.scoring import BrierScore, ScoringRule

# --------------------------------------------------------------------------------------------------
# Requirements of a device on its network
#
# A budget counts what a network would need once exported, and predicts as the exported network
# would. The packages that export are in higher layers; the budget object calls them.
# --------------------------------------------------------------------------------------------------


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
    ) -> DeviceCost:
        """Count what a network of so many columns in its last layer needs, before any training.

        `encoding` makes rows of that shape of a table with categories or holes. An architecture
        that has no form there is refused with the reason.
        """

    def allows(self, need: DeviceCost) -> bool:
        """Tell whether that is within every limit."""

    def as_exported(
        self, dist: AnyDistribution, X: NDArray[Any], trained: TrainedNetwork
    ) -> AnyDistribution:
        """Return the predictions of X as the device makes them; `dist` is what torch says."""

    def words(self, need: DeviceCost) -> str:
        """Say what is needed."""

    def to_json(self) -> dict[str, Any]:
        """Return the limits as plain values."""


# --------------------------------------------------------------------------------------------------
# The specification of a fit of networks
# --------------------------------------------------------------------------------------------------

CPU = torch.device("cpu")


@dataclass(frozen=True)
class AfterTraining:
    """The use of the held-out rows after training."""

    calibration: str | None  # the name of a kind, or "auto"
    set_aside: bool  # whether some rows are kept from all else, for conformal prediction
    keep_rows: int


@dataclass(frozen=True)
class FitSpec:
    """A fit of networks: the grid to choose from, and how each of its points is trained."""

    method: str  # the name of the estimator
    architecture: Architecture
    grid: tuple[Candidate, ...]
    passes: Passes
    after: AfterTraining
    brier: bool = False  # train with the Brier score alone, whatever alpha is
    criterion: Criterion = "nll"
    members: int = 1  # networks of each candidate
    beta: float = 0.0
    input_drop_prob: float = 0.0
    adversarial_step: float = 0.0
    open_architecture: bool = False  # whether the network is chosen too
    # The candidates it is chosen with, as single networks; empty for some of the grid's own.
    first_look: tuple[Candidate, ...] = ()
    max_seconds: float | None = None  # after which no further training is begun
    budget: DeviceBudget | None = None  # of the device; candidates are judged in its form
    leaves_groups_out: bool = False  # whether to calibrate on groups that were left out
    group_folds: int = 8  # the most networks that each have a part of the groups left out
    allows_for_few_rows: bool = False  # whether few rows shrink and widen what it predicts
    laplace: bool = False  # whether to learn what the rows leave open about the last layer
    epochs: int | None = None
    most_steps: int | None = None  # of a training, where `epochs` is None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float = 1e-2
    checkpoint: str | os.PathLike[str] | None = None
    device: torch.device = CPU
    verbose: bool = False
    engine: Engine | None = None  # who trains beside this process

    def scoring_rule(self, alphas: list[float]) -> ScoringRule:
        """Return the loss of members with these alphas."""
        return BrierScore(len(alphas)) if self.brier else ScoringRule(alphas, self.beta)
