"""Dense networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import prod
from typing import Any

from torch import nn

from rdeepsense.errors import InputError
from rdeepsense.networks.base import Shape, check_table

# --------------------------------------------------------------------------------------------------
# The paper's architecture: fully-connected layers with ReLU between them
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dense:
    """Fully-connected layers of these widths; the paper's are ``(500, 500, 500)``."""

    hidden: Sequence[int] = (64, 64)

    def __post_init__(self) -> None:
        hidden: object = self.hidden
        if not isinstance(hidden, Sequence) or isinstance(hidden, str):
            raise InputError(f"hidden = {hidden!r} is not a sequence of layer widths")
        for width in hidden:
            if isinstance(width, bool) or not hasattr(width, "__index__") or width < 1:
                raise InputError(
                    f"a width in hidden = {width!r} is not a whole number of at least 1"
                )
        object.__setattr__(self, "hidden", tuple(int(width) for width in self.hidden))

    def check(self, shape: Shape) -> None:
        """Refuse windows."""
        check_table(shape)

    def build(self, shape: Shape, outputs: int, member: int) -> nn.Sequential:
        """Build inputs -> hidden[0] -> ... -> outputs."""
        return dense(shape[0], self.hidden, outputs)

    def arguments(self) -> dict[str, Any]:
        return asdict(self)


def dense(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
    """Build inputs -> hidden[0] -> ... -> outputs."""
    layers: list[nn.Module] = []
    for width_in, width_out in pairwise((inputs, *hidden)):
        layers += [nn.Linear(width_in, width_out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear((inputs, *hidden)[-1], outputs))


# --------------------------------------------------------------------------------------------------
# Dense layers on flattened windows
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flattened(Dense):
    """Fully-connected layers of these widths that read windows (rows, time, channels) as rows.

    It knows nothing of time, so it is for windows in which the place of a sample tells what it is,
    and beside `DeepSense` as the plainest network there is. Inputs are standardised by channel.
    """

    def check(self, shape: Shape) -> None:
        """Refuse tables, whose rows are flat already."""
        if len(shape) < 2:
            raise InputError(
                f"X has rows of shape {shape}; Flattened takes windows (rows, time, channels). "
                f"Rows that are flat need hidden={self.hidden}"
            )

    def build(self, shape: Shape, outputs: int, member: int) -> nn.Sequential:
        """Build time x channels -> hidden[0] -> ... -> outputs."""
        return nn.Sequential(nn.Flatten(), *dense(prod(shape), self.hidden, outputs))
