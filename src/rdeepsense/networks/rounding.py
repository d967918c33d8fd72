"""Rounding of the sensors in training: a browser gives acceleration in steps of 0.1 m/s2."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rdeepsense import randomness
from rdeepsense.arrays import Floats
from rdeepsense.networks.units import InputUnits


class RandomRounding(InputUnits):
    """Windows (rows, time, channels), about half of them as sensors that round would give them.

    A sensor with a step s > 0, in its own units, gives s round(p / s) of p. Inputs are
    x = (p - shift) / scale, as `set_units` sets. In evaluation mode nothing is done.
    """

    shift: Tensor
    scale: Tensor
    steps: Tensor

    def __init__(self, sensors: Sequence[int], steps: Sequence[float]) -> None:
        super().__init__()
        self.rounds = any(steps)
        own = [step for step, count in zip(steps, sensors, strict=True) for _ in range(count)]
        # Of training alone, so that model files need not hold them.
        for name, value in (
            ("steps", own),
            ("shift", [0.0] * len(own)),
            ("scale", [1.0] * len(own)),
        ):
            self.register_buffer(name, torch.tensor(value).view(1, -1), persistent=False)

    def set_units(self, shift: Floats, scale: Floats) -> None:
        """Note how inputs were standardised: by channel, or each number of a flat window."""
        channels = self.steps.shape[1]
        self.shift, self.scale = (
            torch.tensor(values).to(self.shift).view(-1, channels) for values in (shift, scale)
        )

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and self.rounds):
            return x
        drawn = torch.rand(
            len(x), 1, 1, generator=randomness.current(x.device), dtype=x.dtype, device=x.device
        )
        raw = x * self.scale + self.shift
        step = torch.where(self.steps > 0, self.steps, 1.0)
        rounded = (step * torch.round(raw / step) - self.shift) / self.scale
        return torch.where((drawn < 0.5) & (self.steps > 0), rounded, x)
