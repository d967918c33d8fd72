"""Steps that move numbers: parts of a value in another order, and several values in one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np

from rdeepsense.arrays import Floats, Integers
from rdeepsense.deploy.folded.graph.node import COUNT, MOST_NUMBERS, PLACE, Node
from rdeepsense.modelfile.schema import several, whole

MOST_AXES = 6


@dataclass(frozen=True)
class Strided(Node):
    """y[i, j, ..] = x[offset + i strides_0 + j strides_1 + ..]: slices, transposes, repeats."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    kind: ClassVar[str] = "strided"
    fields: ClassVar = {
        "offset": PLACE,
        "sizes": several(COUNT, MOST_AXES, least=1),
        "strides": several(whole(-MOST_NUMBERS, MOST_NUMBERS), MOST_AXES, least=1),
    }

    @property
    def is_run(self) -> bool:
        """Whether it is one stretch of what it reads."""
        return self.strides == (1,)

    def size(self, *sizes: int) -> int:
        self.need(len(self.sizes) == len(self.strides), "as many sizes as strides")
        reach = [(n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True)]
        low = self.offset + sum(min(r, 0) for r in reach)
        high = self.offset + sum(max(r, 0) for r in reach)
        self.need(0 <= low <= high < sizes[0], f"it reads {low} to {high} of {sizes[0]} numbers")
        return prod(self.sizes)

    @cached_property
    def index(self) -> Integers:
        """Which numbers it reads, in its order."""
        found = np.array(self.offset)
        for n, stride in zip(self.sizes, self.strides, strict=True):
            found = found[..., None] + stride * np.arange(n)
        return found.ravel()

    def run(self, *values: Floats) -> Floats:
        return values[0][:, self.index]


@dataclass(frozen=True)
class Concatenated(Node):
    """Values one after the other."""

    kind: ClassVar[str] = "concatenated"

    def size(self, *sizes: int) -> int:
        return sum(sizes)

    def run(self, *values: Floats) -> Floats:
        return np.concatenate(values, axis=1)
