"""The frequency response of short intervals, as `networks.spectrum` computes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.node import COUNT, Node
from rdeepsense.modelfile.schema import whole

QUIET = 0.5e-3
LONGEST = 1 << 12


@dataclass(frozen=True)
class Spectrum(Node):
    """(time, channels) -> (channels, terms, intervals): X_0, log(sqrt(|X_f|^2 + q^2) + q)."""

    interval: int
    channels: int

    kind: ClassVar[str] = "spectrum"
    fields: ClassVar = {"interval": whole(1, LONGEST), "channels": COUNT}

    @property
    def terms(self) -> int:
        return self.interval // 2 + 1

    @cached_property
    def waves(self) -> tuple[Floats, Floats]:
        """Cosines and sines (interval, terms) over the interval, in the layer's float32."""
        n = self.interval
        angles = np.outer(np.arange(n), np.arange(self.terms)) % n * (2 * np.pi / n)
        cosines, sines = np.cos(angles) / n, np.sin(angles) / n
        return (
            cosines.astype(np.float32).astype(np.float64),
            sines.astype(np.float32).astype(np.float64),
        )

    def size(self, *sizes: int) -> int:
        each = self.interval * self.channels
        self.need(sizes[0] % each == 0, f"intervals of {each} of {sizes[0]} numbers")
        return sizes[0] // each * self.channels * self.terms

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), -1, self.interval, self.channels)
        parts = x.transpose(0, 3, 1, 2)
        real, imaginary = (parts @ wave for wave in self.waves)
        power = real[..., 1:] ** 2 + imaginary[..., 1:] ** 2
        response = np.log(np.sqrt(power + QUIET**2) + QUIET)
        found = np.concatenate([real[..., :1], response], -1).transpose(0, 1, 3, 2)
        return found.reshape(len(x), -1)

    def multiply_adds(self, *sizes: int) -> int:
        return 2 * sizes[0] * self.terms
