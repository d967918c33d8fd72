"""A graph of windows cut into what is computed of one interval, of one step, and at the end.

    f_t = interval(x_t),    top_t, states = step(f_t, states),    raw = last(mean or last of top)

From a state of zeros over all intervals of a window this is the graph itself. A stream keeps f_t,
or goes on with the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.graph import value_sizes
from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.folded.graph.recurrent import Recurrent


@dataclass(frozen=True)
class Stream:
    """Steps of an interval of `read` numbers, of a recurrent step, and of what is pooled."""

    read: int
    count: int  # intervals of a window
    interval: tuple[Node, ...]
    step: tuple[Node, ...]  # each reads the one before it
    last: tuple[Node, ...]
    mean: bool  # over the intervals; otherwise the last one counts

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """How many numbers f_t, top_t and raw have."""
        found = value_sizes(self.read, self.interval)[-1]
        top = value_sizes(found, self.step)[-1]
        return found, top, value_sizes(top, self.last)[-1]

    def found(self, z: Floats) -> Floats:
        """Compute f_t of scaled windows, (rows, count, numbers)."""
        parts = z.reshape(-1, self.read)
        return run_steps(self.interval, parts).reshape(len(z), self.count, -1)

    def raw(self, found: Floats) -> Floats:
        """Compute columns from f_t, (rows, any number, numbers): the last `count` are pooled."""
        rows = len(found)
        top = run_steps(self.step, found.reshape(rows, -1)).reshape(rows, found.shape[1], -1)
        pooled = top[:, -self.count :].mean(1) if self.mean else top[:, -1]
        return run_steps(self.last, pooled)

    @property
    def multiply_adds(self) -> tuple[int, int, int]:
        """Count those of an interval, a step, and the end."""
        found, top, _ = self.sizes
        pooling = top * self.count if self.mean else 0
        costs = (_cost(self.read, self.interval), _cost(found, self.step), _cost(top, self.last))
        return costs[0], costs[1], costs[2] + pooling

    @property
    def states(self) -> int:
        """How many numbers recurrent layers carry on."""
        return sum(state_size(node) for node in self.step)


def state_size(node: Node) -> int:
    """Return how many numbers a step carries on: states, and cells of an LSTM."""
    if not isinstance(node, Recurrent):
        return 0
    return node.states * (2 if node.kind == "lstm" else 1)


def _cost(inputs: int, nodes: tuple[Node, ...]) -> int:
    sizes = value_sizes(inputs, nodes)
    return sum(node.multiply_adds(*(sizes[k] for k in node.reads)) for node in nodes)


def run_steps(nodes: Sequence[Node], z: Floats) -> Floats:
    """Compute what steps make of scaled rows."""
    values = [z]
    for node in nodes:
        values.append(node.run(*(values[read] for read in node.reads)))
    return np.asarray(values[-1])
