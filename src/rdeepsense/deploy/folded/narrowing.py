"""What the labels of one person or sensor leave of a variance, row by row.

    kept = max(1 - sum_j shares_j (1 - psi_j^T M_j psi_j / psi_j^T psi_j), least)

with psi_j = B_j^T [h, 1], h the last hidden layer's numbers, for a few directions j of the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdeepsense.arrays import Floats


@dataclass(frozen=True)
class Narrowing:
    """B (directions, hidden + 1, size), lower triangular, and M (directions, size, size)."""

    turned: Floats
    left: Floats
    shares: Floats  # (outputs, directions)
    least: float

    def kept(self, h: Floats) -> Floats:
        """Return what the variance of rows is multiplied by, (rows, outputs)."""
        phi = np.column_stack([h, np.ones(len(h))])
        psi = np.einsum("rf,jfs->rjs", phi, self.turned)
        length = (psi * psi).sum(2)
        open_ = np.einsum("rjs,jst,rjt->rj", psi, self.left, psi)
        ratio = np.divide(open_, length, out=np.ones_like(open_), where=length > 0)
        found: Floats = 1 - (1 - np.clip(ratio, 0.0, 1.0)) @ self.shares.T
        return np.maximum(found, self.least)
