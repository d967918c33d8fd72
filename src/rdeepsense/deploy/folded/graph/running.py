"""Recurrent layers that go on from interval to interval, as the running way of a stream has them.

    f_t = interval(x_t),    top_t, states = step(f_t, states),    raw = last(mean or last of top)

with the states of the interval before, and the last `count` of top. That is another function than
the trained one, and a factor is its own calibration: of logits, or of standard deviations.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.model import FoldedGraph
from rdeepsense.deploy.folded.graph.recurrent import Recurrent
from rdeepsense.deploy.folded.graph.stream import Stream, run_steps
from rdeepsense.deploy.folded.runner import Outputs


class Running:
    """The states of one stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._tops: deque[Floats] = deque(maxlen=stream.count if stream.mean else 1)
        self.begin()

    def begin(self) -> None:
        """Forget all intervals."""
        self._states = [
            (np.zeros((1, node.states)),) * 2 if isinstance(node, Recurrent) else None
            for node in self.stream.step
        ]
        self._tops.clear()

    def push(self, z: Floats) -> None:
        """Go on by an interval of scaled numbers, (1, read)."""
        value = run_steps(self.stream.interval, z)
        for k, node in enumerate(self.stream.step):
            states = self._states[k]
            if states is None:
                value = node.run(value)
            else:
                assert isinstance(node, Recurrent)
                self._states[k] = states = node.step(value, *states)
                value = states[0]
        self._tops.append(value)

    def raw(self) -> Floats:
        """Compute the columns of the last layer, (1, columns)."""
        return run_steps(self.stream.last, np.mean(self._tops, axis=0))


def finished(folded: FoldedGraph, raw: Floats, X: NDArray[Any], factor: float) -> Outputs:
    """Turn columns into predictions: logits, or stds that no guard widened, times the factor."""
    if folded.facts.is_classifier:
        return folded.finish(factor * raw, X)
    return folded.finish(raw, X, factor)
