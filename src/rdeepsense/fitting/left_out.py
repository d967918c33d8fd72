"""The record of groups that were left out: networks, and what each said of groups it never saw.

A new person or a new sensor is unlike all rows that were trained on, but it is like a group that
was left out of a training. So whatever is to be true of a new group is learnt from these rows:
calibration now, and how fast a model may adapt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution, concatenate
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.passes import Forward


@dataclass(frozen=True)
class LeftOutFold:
    """A network, the rows that it was trained on, and those of the groups hidden from it.

    Hidden rows stand in the order of the table, which within a group may be that of time.
    """

    network: StochasticNetwork
    trained_on: Part
    hidden: Part
    dist: AnyDistribution  # of the hidden rows, in units, uncalibrated
    X: NDArray[Any]
    y: NDArray[Any]  # encoded: numbers in units, or numbers of classes
    group: NDArray[Any]  # the label of each hidden row


@dataclass(frozen=True)
class LeftOut:
    """All groups, each predicted by a network that did not see it."""

    folds: tuple[LeftOutFold, ...]
    forward: Forward  # how rows reach the networks
    target_scaler: Scaler | None  # from the networks' scale to units; None for classes

    def joined(self, name: str) -> NDArray[Any]:
        """Return an array of all folds, one after the other."""
        return np.concatenate([getattr(fold, name) for fold in self.folds])

    @property
    def dist(self) -> AnyDistribution:
        """The predictions of all rows, fold after fold."""
        return concatenate([fold.dist for fold in self.folds])

    @property
    def weight(self) -> Floats:
        """Weights by which each group counts alike (`alike`)."""
        weight = np.concatenate([fold.hidden.weight for fold in self.folds])
        return alike(weight, self.joined("group"))


def alike(weight: Floats, group: NDArray[Any]) -> Floats:
    """Return weights, of mean 1, by which each group counts alike: w_i / sum of w in i's group.

    A new group is a draw of a group, not of a row. A mean over groups of each group's own mean
    estimates what such a draw is like, and a long recording does not outvote the short ones.
    """
    number = np.unique(group, return_inverse=True)[1]
    own = weight / np.bincount(number, weight)[number]
    relative: Floats = own / own.mean()
    return relative
