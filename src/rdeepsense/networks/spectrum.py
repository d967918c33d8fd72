"""The frequency response of short intervals, as a layer."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

QUIET = 0.5e-3


class FrequencyResponse(nn.Module):
    """Windows (rows, time, channels) -> (rows, channels, terms, intervals).

    With X_f = sum_t x_t exp(-2 pi i f t / n) / n for an interval of n samples x, the terms are
    the mean X_0 with its sign, which tells the direction of gravity, and, because motion spans
    orders of magnitude,

        log(sqrt(|X_f|^2 + q^2) + q),   f = 1 .. n/2,   2 q = 0.001 of a standardised channel

    whose slope is finite where all is silent. The sums are products with fixed matrices: for
    intervals this short they cost no more than an FFT, and every run-time has them.
    """

    cosines: Tensor
    sines: Tensor

    def __init__(self, interval: int) -> None:
        super().__init__()
        self.interval = interval
        self.terms = interval // 2 + 1
        for name in ("cosines", "sines"):
            table = torch.empty(interval, self.terms, dtype=torch.float32)
            self.register_buffer(name, table, persistent=False)
        # Without memory there is a shape alone: to compute one would import torch's compiler.
        if not self.cosines.is_meta:
            self._fill()

    def _fill(self) -> None:
        angles = torch.outer(torch.arange(self.interval), torch.arange(self.terms)) % self.interval
        angles = angles.double() * (2 * math.pi / self.interval)
        self.cosines.copy_(angles.cos() / self.interval)
        self.sines.copy_(angles.sin() / self.interval)

    def forward(self, x: Tensor) -> Tensor:
        parts = x.unflatten(1, (-1, self.interval)).permute(0, 3, 1, 2)
        real, imaginary = parts @ self.cosines, parts @ self.sines
        power = real[..., 1:] ** 2 + imaginary[..., 1:] ** 2
        response = torch.log(torch.sqrt(power + QUIET**2) + QUIET)
        return torch.cat([real[..., :1], response], -1).transpose(2, 3)
