"""Whether a network of windows can be computed interval by interval, and how.

The network is traced a second time on a window of one interval: where what its first recurrent
layer reads is, interval by interval, what it reads of a whole window, the two are one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import nn

from rdeepsense.deploy.folded.graph.graph import Graph
from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.folded.graph.pointwise import Mean
from rdeepsense.deploy.folded.graph.recurrent import Recurrent
from rdeepsense.deploy.folded.graph.shaping import Strided
from rdeepsense.deploy.folded.graph.spectrum import Spectrum
from rdeepsense.deploy.folded.graph.stream import Stream
from rdeepsense.deploy.folded.graph.weighted import Linear
from rdeepsense.deploy.tracing.simplify import simplified
from rdeepsense.deploy.tracing.trace import trace
from rdeepsense.errors import InputError

ROWS = 4
AGREEMENT = 1e-9  # of the largest column


def stream_of(body: nn.Module, graph: Graph) -> Stream | None:
    """Cut a network's graph; None where it cannot be."""
    first = graph.nodes[0]
    if not isinstance(first, Spectrum) or len(graph.shape) != 2:
        return None
    length, channels = graph.shape
    count = length // first.interval
    try:
        short = trace(body, (first.interval, channels))
    except (InputError, RuntimeError):
        return None
    at, cut = _first_recurrent(short), _first_recurrent(graph.nodes)
    if count < 2 or at is None or cut is None:
        return None
    interval = simplified(short[:at], short[at].reads[0])
    rest = graph.nodes[cut:]
    if not _follow(rest, graph.nodes[cut].reads[0], cut):
        return None
    end = next((k for k, n in enumerate(rest) if not isinstance(n, Recurrent | Linear)), len(rest))
    if end == len(rest) or not _pools(rest[end], graph.sizes[cut + end], count):
        return None
    found = Stream(
        first.interval * channels,
        count,
        interval,
        _chained(rest[:end]),
        _chained(rest[end + 1 :]),
        isinstance(rest[end], Mean),
    )
    return found if found.last and _agrees(found, graph) else None


def _first_recurrent(nodes: tuple[Node, ...]) -> int | None:
    return next((k for k, node in enumerate(nodes) if isinstance(node, Recurrent)), None)


def _follow(rest: tuple[Node, ...], read: int, first: int) -> bool:
    """Tell whether each step reads the one before it alone."""
    wanted = [(read,), *((first + k,) for k in range(1, len(rest)))]
    return [node.reads for node in rest] == wanted


def _pools(node: Node, size: int, count: int) -> bool:
    """Tell whether a step takes the mean over all intervals, or the last one."""
    each = size // count
    if isinstance(node, Mean):
        return (node.count, node.inner) == (count, each)
    last = (each * (count - 1), (each,), (1,))
    return isinstance(node, Strided) and (node.offset, node.sizes, node.strides) == last


def _chained(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(replace(node, reads=(k,)) for k, node in enumerate(nodes))


def _agrees(stream: Stream, graph: Graph) -> bool:
    z = np.random.default_rng(0).normal(size=(ROWS, graph.inputs))
    wanted = graph.computed(z)
    try:
        found = stream.raw(stream.found(z))
    except (InputError, ValueError):
        return False
    return bool(np.abs(found - wanted).max() <= AGREEMENT * np.abs(wanted).max())
