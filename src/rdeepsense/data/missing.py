"""Further holes in training rows: where values lack by chance, any row might have lacked them.

A column that lacks a value in a few rows teaches a network little of what that means, and its
intervals are too narrow there. So each row is also trained on with holes drawn anew, at the rate of
the column's own, in as many copies as make 2,000 holes of the rarest column; at most 7. It takes no
longer: an epoch is as many steps as without them.

Not where a hole tells something of the target: a sensor may fail because of what it should measure,
and drawn holes would water that down. That is where mean or square of the targets with and without
the hole are more than 3 standard errors apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from rdeepsense.arrays import Booleans, Floats
from rdeepsense.data.level_vectors import scaled_targets
from rdeepsense.data.rows import FitRows
from rdeepsense.data.scaling import Scaler

ENOUGH = 2_000  # holes of a column
MOST_COPIES = 7
MOST_ROWS = 400_000  # of all copies together
TELLING = 3.0  # standard errors
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class FurtherHoles:
    """Columns that lack values by chance, how often, and how many copies of a row have new ones."""

    columns: tuple[int, ...]
    rates: Floats
    copies: int
    seed: int

    @classmethod
    def of(cls, rows: FitRows, classes: int | None) -> FurtherHoles | None:
        """Find the columns among those with a flag; None where there is nothing to draw."""
        if rows.encoding is None or not rows.encoding.flagged:
            return None
        part, y = rows.rows, scaled_targets(rows.y[rows.rows.index], classes)
        told = np.hstack([y, y**2])
        columns, counts = [], []
        for column in rows.encoding.flagged:
            lacking = np.isnan(rows.X[part.index, column])
            if lacking.any() and not _tells(lacking, told):
                columns.append(column)
                counts.append(int(lacking.sum()))
        if not columns:
            return None
        copies = min(MOST_COPIES, -(-ENOUGH // min(counts)) - 1, MOST_ROWS // len(part))
        rates = np.array(counts, np.float64) / len(part)
        return cls(tuple(columns), rates, copies, rows.seed) if copies else None

    def drawn(self, x: torch.Tensor, scaler: Scaler) -> torch.Tensor:
        """Return scaled rows, and below them their copies with further holes."""
        encoding = scaler.encoding
        assert encoding is not None
        numbers = [encoding.numbers.index(column) for column in self.columns]
        flags = [len(encoding.numbers) + encoding.flagged.index(k) for k in self.columns]
        on = torch.from_numpy((1 - scaler.shift[flags]) / scaler.scale[flags]).to(x)
        rng, parts = np.random.default_rng(self.seed), [x]
        for _ in range(self.copies):
            hole = torch.from_numpy(rng.random((len(x), len(numbers))) < self.rates).to(x.device)
            copy = x.clone()
            copy[:, numbers] = torch.where(hole, 0.0, copy[:, numbers])
            copy[:, flags] = torch.where(hole, on, copy[:, flags])
            parts.append(copy)
        return torch.cat(parts)


def _tells(lacking: Booleans, values: Floats) -> bool:
    """Tell whether values with a hole differ from the others by more than chance would have it."""
    with_hole, without = values[lacking], values[~lacking]
    if len(with_hole) < 2 or len(without) < 2:
        return False
    error = np.sqrt(with_hole.var(0) / len(with_hole) + without.var(0) / len(without))
    apart = np.abs(with_hole.mean(0) - without.mean(0)) / np.maximum(error, TINY)
    return bool(apart.max() > TELLING)
