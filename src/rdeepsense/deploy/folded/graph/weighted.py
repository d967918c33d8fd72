"""Steps with weights: Linear layers and convolutions, batch norms inside."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.node import COUNT, MOST_NUMBERS, PLACE, Node
from rdeepsense.modelfile.schema import FLAG, choice, several

PAIR = several(COUNT, 2, least=2)
Pair = tuple[int, int]


@dataclass(frozen=True)
class Linear(Node):
    """y = W x + b of each stretch of x, with `relu` its positive part."""

    relu: bool
    weight: Floats  # (outputs, inputs)
    bias: Floats

    kind: ClassVar[str] = "linear"
    fields: ClassVar = {"relu": FLAG}
    arrays: ClassVar = {"weight": 2, "bias": 1}

    def size(self, *sizes: int) -> int:
        outputs, inputs = map(int, self.weight.shape)
        fits = sizes[0] % inputs == 0 and len(self.bias) == outputs
        self.need(fits, f"{inputs} inputs and {outputs} outputs, of {sizes[0]} numbers")
        return sizes[0] // inputs * outputs

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), -1, self.weight.shape[1])
        found = (x @ self.weight.T + self.bias).reshape(len(x), -1)
        return np.maximum(found, 0.0) if self.relu else found

    def multiply_adds(self, *sizes: int) -> int:
        return sizes[0] * len(self.weight)


@dataclass(frozen=True)
class Window(Node):
    """What a step reads that slides over (channels, height, width): its places and their number."""

    height: int
    width: int
    stride: Pair

    fields: ClassVar = {"height": COUNT, "width": COUNT, "stride": PAIR}

    def places(self, reach: Pair, padding: Pair = (0, 0)) -> Pair:
        """Count the places of a kernel that reaches over so many numbers."""
        high, wide = (
            (n + 2 * p - r) // s + 1
            for n, p, r, s in zip(
                (self.height, self.width), padding, reach, self.stride, strict=True
            )
        )
        self.need(min(high, wide) > 0, f"a kernel of {reach} over {self.height} x {self.width}")
        return high, wide


@dataclass(frozen=True)
class Convolution(Window):
    """y_o = b_o + sum over channels and taps, zeros around; with `relu` its positive part.

    Of one axis the height is 1. A batch norm after it is inside W and b.
    """

    padding: Pair
    dilation: Pair
    groups: int
    relu: bool
    weight: Floats  # (outputs, inputs of a group, height, width)
    bias: Floats

    kind: ClassVar[str] = "convolution"
    fields: ClassVar = {
        **Window.fields,
        "padding": several(PLACE, 2, least=2),
        "dilation": PAIR,
        "groups": COUNT,
        "relu": FLAG,
    }
    arrays: ClassVar = {"weight": 4, "bias": 1}

    @property
    def channels(self) -> int:
        return int(self.weight.shape[1]) * self.groups

    def out(self) -> Pair:
        """Return height and width of what comes out."""
        high, wide = (
            (k - 1) * d + 1 for k, d in zip(self.weight.shape[2:], self.dilation, strict=True)
        )
        return self.places((high, wide), self.padding)

    def size(self, *sizes: int) -> int:
        outputs = len(self.weight)
        fits = outputs % self.groups == 0 and len(self.bias) == outputs
        fits = fits and self.channels * self.height * self.width == sizes[0]
        self.need(fits, f"weights of {self.weight.shape} in {self.groups} groups, of {sizes[0]}")
        (p, q), (high, wide) = self.padding, self.out()
        padded = self.channels * (self.height + 2 * p) * (self.width + 2 * q)
        self.need(padded <= MOST_NUMBERS, f"with a padding of {self.padding}")
        return outputs * high * wide

    def run(self, *values: Floats) -> Floats:
        rows, (high, wide) = len(values[0]), self.out()
        x = values[0].reshape(rows, self.channels, self.height, self.width)
        (p, q), (s, t), (d, e) = self.padding, self.stride, self.dilation
        x = np.pad(x, ((0, 0), (0, 0), (p, p), (q, q)))
        split = x.reshape(rows, self.groups, -1, *x.shape[2:])
        weight = self.weight.reshape(self.groups, -1, *self.weight.shape[1:])
        found = np.zeros((rows, self.groups, weight.shape[1], high * wide))
        for i in range(weight.shape[3]):
            for j in range(weight.shape[4]):
                tap = split[..., i * d : i * d + (high - 1) * s + 1 : s, :]
                tap = tap[..., j * e : j * e + (wide - 1) * t + 1 : t]
                found += weight[..., i, j] @ tap.reshape(*tap.shape[:3], -1)
        raw = found.reshape(rows, len(self.bias), -1) + self.bias[:, None]
        flat: Floats = raw.reshape(rows, -1)
        return np.maximum(flat, 0.0) if self.relu else flat

    def multiply_adds(self, *sizes: int) -> int:
        high, wide = self.out()
        return self.weight.size * high * wide


@dataclass(frozen=True)
class Pool(Window):
    """The maximum or the mean over each place of a kernel, channel by channel."""

    kernel: Pair
    name: str

    kind: ClassVar[str] = "pool"
    fields: ClassVar = {**Window.fields, "kernel": PAIR, "name": choice("max", "mean")}

    def size(self, *sizes: int) -> int:
        plane = self.height * self.width
        self.need(sizes[0] % plane == 0, f"planes of {plane} of {sizes[0]} numbers")
        high, wide = self.places(self.kernel)
        found = sizes[0] // plane * high * wide
        self.need(found * prod(self.kernel) <= MOST_NUMBERS, f"a kernel of {self.kernel}")
        return found

    def run(self, *values: Floats) -> Floats:
        (high, wide), (s, t) = self.places(self.kernel), self.stride
        x = values[0].reshape(len(values[0]), -1, self.height, self.width)
        taps = np.stack(
            [
                x[:, :, i : i + (high - 1) * s + 1 : s, j : j + (wide - 1) * t + 1 : t]
                for i in range(self.kernel[0])
                for j in range(self.kernel[1])
            ]
        )
        found: Floats = taps.max(0) if self.name == "max" else taps.mean(0)
        return found.reshape(len(x), -1)
