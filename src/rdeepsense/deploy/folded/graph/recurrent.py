"""Recurrent layers: one step after the other, from a state of zeros.

    GRU    r, u = sigmoid(x_t + U h + b),   n = tanh(x_t + r (U h + b)),   h' = n + u (h - n)
    LSTM   i, f, g, o = x_t + U h,   c' = sigmoid(f) c + sigmoid(i) tanh(g),
           h' = sigmoid(o) tanh(c')

x_t are products of the inputs with their weights already, from a Linear step: they do not depend on
the state, so a stream computes them once.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.folded.graph.pointwise import sigmoid

LONGEST = 1 << 14  # steps


@dataclass(frozen=True)
class Recurrent(Node):
    """U (gates states, states) and b, one layer; all its states come out."""

    weight: Floats
    bias: Floats

    arrays: ClassVar = {"weight": 2, "bias": 1}
    gates: ClassVar[int]

    @property
    def states(self) -> int:
        return int(self.weight.shape[1])

    def size(self, *sizes: int) -> int:
        columns = self.gates * self.states
        fits = self.weight.shape[0] == len(self.bias) == columns and sizes[0] % columns == 0
        self.need(fits, f"weights of {self.weight.shape} for steps of {sizes[0]} numbers")
        self.need(sizes[0] // columns <= LONGEST, f"{sizes[0] // columns} steps")
        return sizes[0] // self.gates

    def multiply_adds(self, *sizes: int) -> int:
        return sizes[0] * self.states

    def run(self, *values: Floats) -> Floats:
        rows = len(values[0])
        x = values[0].reshape(rows, -1, self.gates * self.states)
        h = carried = np.zeros((rows, self.states))
        found = np.empty((rows, x.shape[1], self.states))
        for t in range(x.shape[1]):
            h, carried = self.step(x[:, t], h, carried)
            found[:, t] = h
        return found.reshape(rows, -1)

    def products(self, h: Floats) -> Floats:
        """Compute U h + b of states, (rows, states)."""
        return h @ self.weight.T + self.bias

    @abstractmethod
    def step(self, x: Floats, h: Floats, carried: Floats) -> tuple[Floats, Floats]:
        """Return the next state, and what else is carried on."""


@dataclass(frozen=True)
class Gru(Recurrent):
    kind: ClassVar[str] = "gru"
    gates: ClassVar[int] = 3

    def step(self, x: Floats, h: Floats, carried: Floats) -> tuple[Floats, Floats]:
        n = self.states
        sums = self.products(h)
        gates = sigmoid(x[:, : 2 * n] + sums[:, : 2 * n])
        new = np.tanh(x[:, 2 * n :] + gates[:, :n] * sums[:, 2 * n :])
        return new + gates[:, n:] * (h - new), carried


@dataclass(frozen=True)
class Lstm(Recurrent):
    kind: ClassVar[str] = "lstm"
    gates: ClassVar[int] = 4

    def step(self, x: Floats, h: Floats, carried: Floats) -> tuple[Floats, Floats]:
        i, f, g, o = np.split(x + self.products(h), 4, axis=1)
        carried = sigmoid(f) * carried + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(carried), carried
