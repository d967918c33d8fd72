"""A network of windows as steps that follow one another, in numpy.

z = (x - centre) / scale by channel, 0 where x is missing and at most REACH;
then step k makes value k + 1 of the values that it reads, and the last one is raw
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.node import MOST_NUMBERS, Node
from rdeepsense.errors import InputError
from rdeepsense.guard import REACH

MOST_STEPS = 1_000
NUMBERS = 1 << 22  # that the values of the rows computed at once may have
MOST_IN_ALL = 1 << 24  # of the values of one row


@dataclass(frozen=True)
class Graph:
    """A network that takes raw sensor units; `shape` is that of a row, channels last."""

    shape: tuple[int, ...]
    centre: Floats
    scale: Floats
    nodes: tuple[Node, ...]

    @property
    def inputs(self) -> int:
        """The numbers of a row."""
        return prod(self.shape)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each value has; refuses steps that do not fit."""
        return value_sizes(self.inputs, self.nodes)

    @property
    def columns(self) -> int:
        return self.sizes[-1]

    @property
    def multiply_adds(self) -> int:
        """Of one pass."""
        return sum(self.costs)

    @property
    def costs(self) -> tuple[int, ...]:
        """The multiply-adds of each step."""
        return tuple(
            node.multiply_adds(*(self.sizes[k] for k in node.reads)) for node in self.nodes
        )

    def rows_at(self, z: Floats) -> Floats:
        """Return rows whose numbers lie so many scales from the centre."""
        found: Floats = self.centre + z.reshape(len(z), *self.shape) * self.scale
        return found

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute the columns of the last layer, some rows at a time."""
        each = max(1, NUMBERS // sum(self.sizes))
        parts = [self.computed(self.read(X[k : k + each])) for k in range(0, len(X), each)]
        return np.concatenate(parts) if parts else np.empty((0, self.columns))

    def read(self, X: NDArray[Any]) -> Floats:
        """Scale rows, (rows, inputs)."""
        with np.errstate(over="ignore"):
            z = np.nan_to_num((X.astype(np.float64) - self.centre) / self.scale)
        found: Floats = np.clip(z, -REACH, REACH).reshape(len(X), -1)
        return found

    def computed(self, z: Floats, upto: int | None = None) -> Floats:
        """Compute the last value, or that of a number, of scaled rows."""
        upto = len(self.nodes) if upto is None else upto
        values: dict[int, Floats] = {0: z}
        last = last_reads(self.nodes[:upto])
        for k, node in enumerate(self.nodes[:upto]):
            values[k + 1] = node.run(*(values[read] for read in node.reads))
            for read in set(node.reads):
                if last[read] == k and read != upto:
                    del values[read]
        return values[upto]


def value_sizes(inputs: int, nodes: tuple[Node, ...]) -> tuple[int, ...]:
    """Return how many numbers each value has, or refuse the first step that does not fit."""
    if not 0 < len(nodes) <= MOST_STEPS:
        raise InputError(f"a graph of {len(nodes)} steps; accepted: 1 to {MOST_STEPS}")
    sizes = [inputs]
    for k, node in enumerate(nodes):
        if not node.reads or not all(0 <= read <= k for read in node.reads):
            raise InputError(f"step {k} reads {node.reads}, which are no values before it")
        sizes.append(node.size(*(sizes[read] for read in node.reads)))
        if not 0 < sizes[-1] <= MOST_NUMBERS:
            raise InputError(f"step {k} makes {sizes[-1]} numbers; at most {MOST_NUMBERS}")
    if sum(sizes) > MOST_IN_ALL:
        raise InputError(f"all steps make {sum(sizes)} numbers; at most {MOST_IN_ALL}")
    return tuple(sizes)


def last_reads(nodes: tuple[Node, ...]) -> dict[int, int]:
    """Return for each value that is read the last step that does."""
    return {read: k for k, node in enumerate(nodes) for read in node.reads}
