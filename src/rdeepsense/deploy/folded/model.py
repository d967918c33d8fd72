"""A trained network as plain dense layers and a few numbers, run with numpy alone.

Raw sensor units go in. Scaling of inputs and targets, calibration scale and temperature are inside
the layers and the output, so that real units come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.guarded import guarded
from rdeepsense.deploy.folded.layers import Layers
from rdeepsense.deploy.folded.narrowing import Narrowing
from rdeepsense.deploy.folded.output import Output
from rdeepsense.deploy.folded.runner import MeanStd, Outputs


@dataclass(frozen=True)
class Folded:
    """A model that needs nothing but these numbers; a runner by numpy."""

    facts: Facts
    layers: Layers
    output: Output
    narrowing: Narrowing | None = None  # of C alone: no file holds it

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute the columns of the last layer; with a laplace, its size as one more."""
        laplace = self.output.laplace
        return self.layers.raw(self.facts.inside(X), None if laplace is None else laplace.root)

    def run(self, X: NDArray[Any]) -> Outputs:
        return self.finish(self.raw(X), X)

    def finish(self, raw: Floats, X: NDArray[Any]) -> Outputs:
        """Turn the columns of rows X into predictions, and widen those of rows that are flagged."""
        found = self.output.finish(raw)
        if self.narrowing is not None and isinstance(found, MeanStd):
            kept = self.narrowing.kept(self.layers.last_hidden(self.facts.inside(X)))
            found = found._replace(std=found.std * np.sqrt(kept))
        return guarded(found, self.facts, X)
