"""Groups that were left out at `fit`, as the streams that a new group's rows would be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.calibration import Calibration
from rdeepsense.data.splits import Part
from rdeepsense.distributions import AnyDistribution
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.fitting.adaptation import Stream, group_streams
from rdeepsense.fitting.epistemic import laplace_of
from rdeepsense.fitting.last_hidden import LastHidden, last_hidden
from rdeepsense.fitting.passes import Forward


class HiddenRows(Protocol):
    """A network, the rows that it was trained on, and what it says of groups hidden from it."""

    @property
    def network(self) -> StochasticNetwork: ...
    @property
    def trained_on(self) -> Part: ...
    @property
    def dist(self) -> AnyDistribution:
        """Of the hidden rows, in units, uncalibrated."""

    @property
    def X(self) -> NDArray[Any]: ...  # noqa: N802, the name of rows everywhere
    @property
    def y(self) -> NDArray[Any]: ...
    @property
    def group(self) -> NDArray[Any]: ...


def left_out_streams(
    folds: Iterable[HiddenRows],
    forward: Forward,
    X: NDArray[Any],
    calibration: Calibration | None,
    unit: Floats | None,
) -> list[Stream]:
    """Replay every group through the network that left it out, calibrated as the model is.

    X is the table that `trained_on` counts rows of; `unit` the targets' scale, None for classes.
    """
    streams: list[Stream] = []
    for fold in folds:
        matrix = laplace_of(fold.network, forward, X, fold.trained_on)
        layer = LastHidden.of(fold.network, matrix)
        phi = last_hidden(fold.network, forward, fold.X, layer.projection)
        dist = fold.dist if calibration is None else calibration.apply(fold.dist)
        rows = float(fold.trained_on.weight.sum())
        streams += group_streams(layer, rows, phi, dist, fold.y, fold.group, unit)
    return streams
