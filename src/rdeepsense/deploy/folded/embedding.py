"""Periodic embeddings of standardised inputs, in numpy.

    e_j = max(0, W_j [sin, cos](2 pi c_j z_j) + b_j)

z is read up to EMBEDDING_REACH. Files hold the W_j below each other, as theirs is a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.guard import EMBEDDING_REACH

# Periods per standard deviation: 32 bits hold EMBEDDING_REACH times as many to a sixteenth of one.
FASTEST = 1e4
NUMBERS = 1 << 18  # that are held of a wave at once
SINE_TERMS = 5  # of the polynomial that C computes a sine by, and a cosine


@dataclass(frozen=True)
class Embedding:
    """c (inputs, frequencies), W (inputs width, 2 frequencies) and b (inputs, width)."""

    frequency: Floats
    weight: Floats
    bias: Floats

    @property
    def outputs(self) -> int:
        return self.bias.size

    @property
    def matrices(self) -> Floats:
        """The W_j, (inputs, width, 2 frequencies)."""
        return self.weight.reshape(*self.bias.shape, -1)

    @property
    def multiply_adds(self) -> int:
        """Of one pass: the angles, the polynomials of their sines and cosines, the products."""
        return self.frequency.size * (1 + 2 * SINE_TERMS) + self.weight.size

    def values(self, z: Floats) -> Floats:
        """Compute e (rows, inputs width), a few rows at a time: waves are many numbers."""
        each = max(1, NUMBERS // (2 * self.frequency.size))
        parts = [self._values(z[k : k + each]) for k in range(0, len(z), each)]
        return np.concatenate(parts) if parts else np.empty((0, self.outputs))

    def _values(self, z: Floats) -> Floats:
        near = np.clip(z, -EMBEDDING_REACH, EMBEDDING_REACH)
        angles = 2 * np.pi * near[:, :, None] * self.frequency
        waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=2)
        sums = np.matmul(waves.transpose(1, 0, 2), self.matrices.transpose(0, 2, 1))
        found: Floats = np.maximum(sums.transpose(1, 0, 2) + self.bias, 0.0).reshape(len(z), -1)
        return found
