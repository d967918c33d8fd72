"""The Laplace approximation of the last layer in a folded model (numpy alone).

What the training rows leave open about the last layer (`rdeepsense.uncertainty.laplace`) is one
matrix and two numbers for each output. With the last hidden layer's numbers h and the scaled
inputs z = (x - centre) / scale,

    size(x) = |[h, z, 1] root|,   epistemic std = std size

    numbers:  the predicted variance v (of `link.variance`) becomes v + gain size^2
    classes:  logits with a mean of 0 are divided by sqrt(1 + gain size^2)

`gain` and `std` hold the scale of the target, the calibration and the share of noise in the
variance head. Networks without a hidden layer have [z, 1], those of very many inputs [h, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats


@dataclass(frozen=True)
class LastLayerLaplace:
    """root is square and upper triangular; gain and std have one number for each output."""

    root: Floats
    gain: Floats
    std: Floats


def size(root: NDArray[Any], h: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    """Compute |[h, z, 1] root| of each row, (rows, 1), in the type of the arrays."""
    hidden = h.shape[1]
    sums = h @ root[:hidden] + root[-1]
    if hidden + 1 < len(root):
        sums += z @ root[hidden:-1]
    found: NDArray[Any] = np.sqrt(np.square(sums).sum(1, keepdims=True))
    return found


def triangular(matrix: Floats) -> Floats:
    """Find the upper triangular root with root root^T = matrix matrix^T: |phi root| = |phi matrix|.

    With the rows in reverse order, matrix^T = Q R makes R^T such a root, lower triangular.
    """
    rows, columns = matrix.shape
    if rows == columns and not np.tril(matrix, -1).any():
        return matrix
    wide = np.pad(matrix[::-1], ((0, 0), (0, max(0, rows - columns))))
    upper: Any = np.linalg.qr(wide.T, mode="r")
    return np.triu(upper.T[::-1, ::-1])
