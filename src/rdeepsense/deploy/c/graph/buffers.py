"""Where the values of some steps lie in one buffer, so that it is short.

A value is there from the step that makes it to the last one that reads it. A value that is a
stretch of another lies inside of it, and a step that changes numbers one by one does so in their
place.
"""

from __future__ import annotations

from dataclasses import dataclass

from rdeepsense.deploy.folded.graph.graph import value_sizes
from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.folded.graph.pointwise import Activation, Affine, Sum
from rdeepsense.deploy.folded.graph.shaping import Strided

IN_PLACE = (Activation, Affine, Sum)


@dataclass(frozen=True)
class Buffers:
    """The place of each value: which one it lies in, and where in that; where those lie."""

    homes: tuple[tuple[int, int], ...]
    starts: dict[int, int]  # of values that have a home of their own in the buffer
    length: int

    @classmethod
    def plan(cls, inputs: int, nodes: tuple[Node, ...]) -> Buffers:
        """Find places; value 0 and the last one lie elsewhere."""
        sizes = value_sizes(inputs, nodes)
        homes = _homes(nodes)
        until: dict[int, int] = {}
        for k, node in enumerate(nodes):
            for read in node.reads:
                until[homes[read][0]] = k
        starts: dict[int, int] = {}
        length = 0
        for k in range(len(nodes)):
            home = homes[k + 1][0]
            if home != k + 1 or k + 1 == len(nodes):
                continue
            busy = sorted(
                (starts[other], starts[other] + sizes[other])
                for other in starts
                if until.get(other, k) >= k
            )
            start = 0
            for low, high in busy:
                if low - start >= sizes[home]:
                    break
                start = max(start, high)
            starts[home] = start
            length = max(length, start + sizes[home])
        return cls(homes, starts, length)

    def start(self, value: int) -> int:
        """Return where a value begins in the buffer, or in value 0 where it lies in that."""
        home, offset = self.homes[value]
        return offset + (0 if home == 0 else self.starts[home])


def _homes(nodes: tuple[Node, ...]) -> tuple[tuple[int, int], ...]:
    """Return for each value the one that it lies in, and where."""
    homes = [(0, 0)]
    last: dict[int, int] = {}
    for k, node in enumerate(nodes):
        for read in node.reads:
            last[read] = k
    for k, node in enumerate(nodes):
        home, offset = homes[node.reads[0]]
        if k + 1 == len(nodes):
            homes.append((k + 1, 0))
        elif isinstance(node, Strided) and node.is_run:
            homes.append((home, offset + node.offset))
        elif isinstance(node, IN_PLACE) and _alone(homes, last, home, k):
            homes.append((home, offset))
        else:
            homes.append((k + 1, 0))
    return tuple(homes)


def _alone(homes: list[tuple[int, int]], last: dict[int, int], home: int, k: int) -> bool:
    """Tell whether no later step reads what shares a home, which is not the row itself."""
    sharing = [value for value, (own, _) in enumerate(homes) if own == home]
    return home != 0 and all(last.get(value, -1) <= k for value in sharing)
