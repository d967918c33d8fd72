"""Dense layers on windows: every sample of every channel is an input of its own."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from torch import nn

from rdeepsense.errors import InputError
from rdeepsense.networks.architecture import Shape
from rdeepsense.networks.dense import Dense, dense


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
