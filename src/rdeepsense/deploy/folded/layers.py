"""DenseLayer layers with ReLU between them, in numpy.

    h_0 = x - centre,   h_i = max(0, W_i h_{i-1} + b_i),   raw = W h + b

h_0 is 0 where x is missing, and at most REACH scales; `Folded` moves x into the guard's ranges
first. With an `encoding` x is what that makes of categories and missing values. With an embedding e
(see `embedding`) the first layer reads [h_0, e(h_0 / scale)].
The centre is taken off the input, not put into b_1, because x and centre may be far larger than
their difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.embedding import Embedding
from rdeepsense.deploy.folded.laplace import size
from rdeepsense.encoding import Encoding
from rdeepsense.guard import REACH


@dataclass(frozen=True)
class DenseLayer:
    """W (outputs, inputs) and b (outputs,)."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Layers:
    """A network that takes raw sensor units."""

    centre: Floats
    scale: Floats  # of the training inputs; already inside the first layer
    dense: tuple[DenseLayer, ...]
    embedding: Embedding | None = None
    encoding: Encoding | None = None

    @property
    def inputs(self) -> int:
        """The numbers that are read of a row, once it is encoded."""
        return len(self.centre)

    @property
    def columns(self) -> int:
        """The numbers of a row."""
        return self.inputs if self.encoding is None else self.encoding.inputs

    def rows_at(self, z: Floats) -> Floats:
        """Return rows whose numbers lie so many scales from the centre, levels by turns."""
        rows: Floats = self.centre + z * self.scale
        if self.encoding is None:
            return rows
        return self.encoding.rows_of(rows[:, : len(self.encoding.numbers)])

    @property
    def widths(self) -> tuple[int, ...]:
        """What the first layer reads, hidden layers, columns of the last layer."""
        embedded = 0 if self.embedding is None else self.embedding.outputs
        return (self.inputs + embedded, *(len(layer.bias) for layer in self.dense))

    @property
    def hidden(self) -> int:
        """Width of the last hidden layer; 0 where there is none."""
        return self.widths[-2] if len(self.dense) > 1 else 0

    @property
    def multiply_adds(self) -> int:
        """Of one pass."""
        embedding = 0 if self.embedding is None else self.embedding.multiply_adds
        return sum(layer.weight.size for layer in self.dense) + embedding

    def raw(self, X: NDArray[Any], root: Floats | None = None) -> Floats:
        """Compute the columns of the last layer; with a laplace's root, its size as one more."""
        h = self.read(X)
        centred = h[:, : self.inputs]
        for layer in self.dense[:-1]:
            h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        raw: Floats = h @ self.dense[-1].weight.T + self.dense[-1].bias
        if root is None:
            return raw
        return np.hstack([raw, size(root, h[:, : self.hidden], centred / self.scale)])

    def last_hidden(self, X: NDArray[Any]) -> Floats:
        """Compute what the last layer reads."""
        h = self.read(X)
        for layer in self.dense[:-1]:
            h = np.maximum(h @ layer.weight.T + layer.bias, 0.0)
        return h

    def read(self, X: NDArray[Any]) -> Floats:
        """Compute what the first layer reads."""
        X = X if self.encoding is None else self.encoding.expand(X)
        far = REACH * self.scale
        centred: Floats = np.clip(np.nan_to_num(X - self.centre), -far, far)
        if self.embedding is None:
            return centred
        return np.hstack([centred, self.embedding.values(centred / self.scale)])
