"""A random rotation of the sensors in training: a phone sits differently on every body."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rdeepsense import randomness
from rdeepsense.arrays import Floats
from rdeepsense.networks.units import InputUnits

AXES = 3


class RandomRotation(InputUnits):
    """Windows (rows, time, channels), each seen through sensors rotated at random.

    One rotation vector v ~ N(0, spread^2 I), in radians, is drawn for each window, and every sensor
    of three channels is rotated by the angle t = |v| about v (Rodrigues):

        p' = p + sin(t) / t  v x p + (1 - cos(t)) / t^2  v x (v x p)

    Only p in the sensor's own units can be rotated: the mean that a scaler takes away holds
    gravity, and its axes differ in scale. Inputs are x = (p - shift) / scale, as
    `set_units` sets; before that shift is 0 and scale 1. In evaluation mode nothing is done.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, sensors: Sequence[int], spread: float) -> None:
        super().__init__()
        self.sensors, self.spread = tuple(sensors), spread
        # Of training alone, so that model files need not hold them.
        self.register_buffer("shift", torch.zeros(1, sum(sensors)), persistent=False)
        self.register_buffer("scale", torch.ones(1, sum(sensors)), persistent=False)

    def set_units(self, shift: Floats, scale: Floats) -> None:
        """Note how inputs were standardised: by channel, or each number of a flat window."""
        self.shift, self.scale = (
            torch.tensor(values).to(self.shift).view(-1, sum(self.sensors))
            for values in (shift, scale)
        )

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and self.spread):
            return x
        vector = self.spread * torch.randn(
            len(x),
            1,
            AXES,
            generator=randomness.current(x.device),
            dtype=x.dtype,
            device=x.device,
        )
        raw = (x * self.scale + self.shift).split(self.sensors, dim=-1)
        moved = [_moved(p, vector) if p.shape[-1] == AXES else torch.zeros_like(p) for p in raw]
        return x + torch.cat(moved, -1) / self.scale

    def extra_repr(self) -> str:
        return f"sensors={self.sensors}, spread={self.spread}"


def _moved(points: Tensor, vector: Tensor) -> Tensor:
    """Return p' - p; sinc(a) = sin(pi a) / (pi a) does not divide by 0 where nothing is rotated."""
    turns = torch.linalg.vector_norm(vector, dim=-1, keepdim=True) / math.pi
    once = torch.linalg.cross(vector, points)
    twice = torch.linalg.cross(vector, once)
    moved: Tensor = torch.sinc(turns) * once + 0.5 * torch.sinc(turns / 2) ** 2 * twice
    return moved
