"""What a group that was left out looks like to the network that never saw it, row after row.

A group is a person, a sensor, a batch. Replaying its rows in their order, each with the label
that came with it, is how everything that learns after training is chosen: the network, and its
information, are those of a training without the group, so no label is seen before its turn.
"""

from __future__ import annotations

from dataclasses import dataclass

from rdeepsense.arrays import Floats, Integers


@dataclass(frozen=True)
class GroupStream:
    """The rows of one group with numbers as targets, in their order.

    `phi` (rows, features) is what the last layer reads, and a 1; `error` (rows, outputs) the
    target less the median, and `variance` the predicted one, both in units of the target's scale.
    `information` is sum_n w_n phi_n phi_n^T over the `rows` rows that were trained on.
    """

    phi: Floats
    error: Floats
    variance: Floats
    information: Floats
    rows: float


@dataclass(frozen=True)
class ClassStream:
    """The rows of one group with classes as targets, in their order.

    `phi` (rows, features) is what the last layer reads, and a 1; `logits` (rows, classes) are
    calibrated, and `y` holds the numbers of the true classes. `information` is
    sum_n w_n phi_n phi_n^T over the `rows` rows that were trained on.
    """

    phi: Floats
    logits: Floats
    y: Integers
    information: Floats
    rows: float
