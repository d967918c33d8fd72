"""A trained network of windows as a graph and a few numbers, run with numpy alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.graph.graph import Graph
from rdeepsense.deploy.folded.graph.last_layer import last_hidden
from rdeepsense.deploy.folded.graph.stream import Stream
from rdeepsense.deploy.folded.guarded import guarded
from rdeepsense.deploy.folded.narrowing import Narrowing
from rdeepsense.deploy.folded.output import Output
from rdeepsense.deploy.folded.runner import MeanStd, Outputs


@dataclass(frozen=True)
class FoldedGraph:
    """A model that needs nothing but these numbers; a runner by numpy."""

    facts: Facts
    graph: Graph
    output: Output
    stream: Stream | None = None  # of C alone: no file holds it
    narrowing: Narrowing | None = None  # the same

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute the columns of the last layer."""
        return self.graph.raw(self.facts.inside(X))

    def run(self, X: NDArray[Any]) -> Outputs:
        return self.finish(self.raw(X), X)

    def finish(self, raw: Floats, X: NDArray[Any], factor: float = 1.0) -> Outputs:
        """Turn the columns of rows X into predictions, and widen those of rows that are flagged.

        The `factor` is of the stds of the others.
        """
        found = self.output.finish(raw)
        if self.narrowing is not None and isinstance(found, MeanStd):
            kept = self.narrowing.kept(last_hidden(self.graph, self.facts.inside(X)))
            found = found._replace(std=found.std * np.sqrt(kept))
        return guarded(found, self.facts, X, factor)
