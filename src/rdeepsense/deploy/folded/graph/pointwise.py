"""Steps that change each number by itself, or take means and maxima of some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.node import COUNT, Node
from rdeepsense.modelfile.schema import FLAG, choice

ACTIVATIONS = ("relu", "sigmoid", "tanh")


def sigmoid(x: Floats) -> Floats:
    """Compute 1 / (1 + e^-x) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


@dataclass(frozen=True)
class Activation(Node):
    """max(0, x), 1 / (1 + e^-x) or tanh x."""

    name: str

    kind: ClassVar[str] = "activation"
    fields: ClassVar = {"name": choice(*ACTIVATIONS)}

    def size(self, *sizes: int) -> int:
        return sizes[0]

    def run(self, *values: Floats) -> Floats:
        (x,) = values
        if self.name == "sigmoid":
            return sigmoid(x)
        found: Floats = np.maximum(x, 0.0) if self.name == "relu" else np.tanh(x)
        return found


@dataclass(frozen=True)
class Sum(Node):
    """x + y."""

    kind: ClassVar[str] = "sum"

    def size(self, *sizes: int) -> int:
        self.need(len(sizes) == 2 and sizes[0] == sizes[1], f"it adds {sizes}")
        return sizes[0]

    def run(self, *values: Floats) -> Floats:
        return values[0] + values[1]


@dataclass(frozen=True)
class Affine(Node):
    """y_ci = scale_c x_ci + shift_c, with `relu` its positive part: a batch norm by itself."""

    relu: bool
    scale: Floats
    shift: Floats

    kind: ClassVar[str] = "affine"
    fields: ClassVar = {"relu": FLAG}
    arrays: ClassVar = {"scale": 1, "shift": 1}

    def size(self, *sizes: int) -> int:
        channels = len(self.scale)
        fits = channels == len(self.shift) and sizes[0] % channels == 0
        self.need(fits, f"{channels} channels of {sizes[0]} numbers")
        return sizes[0]

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), len(self.scale), -1)
        found = (x * self.scale[:, None] + self.shift[:, None]).reshape(len(x), -1)
        return np.maximum(found, 0.0) if self.relu else found

    def multiply_adds(self, *sizes: int) -> int:
        return sizes[0]


@dataclass(frozen=True)
class Mean(Node):
    """y_oi = mean_k x_oki, of `count` numbers that lie `inner` apart."""

    count: int
    inner: int

    kind: ClassVar[str] = "mean"
    fields: ClassVar = {"count": COUNT, "inner": COUNT}

    def size(self, *sizes: int) -> int:
        self.need(sizes[0] % (self.count * self.inner) == 0, f"of {sizes[0]} numbers")
        return sizes[0] // self.count

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), -1, self.count, self.inner)
        found: Floats = x.mean(2).reshape(len(x), -1)
        return found

    def multiply_adds(self, *sizes: int) -> int:
        return sizes[0]
