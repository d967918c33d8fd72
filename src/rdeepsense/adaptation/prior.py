"""How far a new group may be from those trained on, before any of its labels is seen.

A group's errors, e = y - median in units of the target's scale, lie along a few directions b_j of
the outputs (a common offset, say). Along each of them, c_j = b_j^T e is

    c_j(x) = phi(x)^T w_j + noise,     w_j ~ N(0, C0_j),     noise ~ N(0, within_j v_j(x))
    C0_j = (rows * information of a training row)^-1 + between_j on the element of the bias

with v_j = sum_o b_oj^2 var_o(x) the predicted variance. Labels take away what w_j leaves open: with
C_j the covariance after them, the predicted variance of output o is multiplied by

    1 - sum_j shares_oj (1 - phi^T C_j phi / phi^T C0_j phi)

so that it is the model's own before the first label, and only shrinks. 1 - sum_j shares_oj is the
part of the variance that no label takes away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rdeepsense.adaptation.evidence import MOST_GROUPS, ROWS, Offsets, spread
from rdeepsense.adaptation.streams import GroupStream
from rdeepsense.arrays import Floats

MOST_DIRECTIONS = 8
EXPLAINED = 0.95  # of the variance between groups, by the directions that are kept
DEFAULT_ROWS, DEFAULT_BETWEEN = 200.0, 0.25
FEWEST_GROUPS = 2


@dataclass(frozen=True)
class Prior:
    """What was chosen: numbers for each of the directions, (outputs, directions), orthonormal.

    `groups` is how many groups it was chosen from; 0 for the defaults.
    """

    rows: float
    between: Floats
    within: Floats
    directions: Floats
    shares: Floats
    groups: int = 0

    @classmethod
    def default(cls, outputs: int, variance: float) -> Prior:
        """Return what is assumed where there were no groups to leave out.

        The weights are as open as 200 training rows leave them, an offset has a quarter of the
        predicted variance (`variance` is a typical one), noise is all of it: where nothing differs
        a first label then costs 0.02 nats a row, and 20 labels have moved five sixths of the way
        to an offset. The variance stays, because nothing tells how much of it a label takes away.
        More than 8 outputs have one offset in common.
        """
        few = outputs <= MOST_DIRECTIONS
        directions = np.eye(outputs) if few else np.full((outputs, 1), outputs**-0.5)
        count = directions.shape[1]
        between = np.full(count, DEFAULT_BETWEEN * variance * (1 if few else outputs))
        shares = np.zeros((outputs, count))
        return cls(DEFAULT_ROWS, between, np.ones(count), directions, shares)

    @classmethod
    def choose(cls, streams: Sequence[GroupStream]) -> Prior:
        """Choose by the likelihood of groups that were left out, each row after those before it.

        The directions are those in which the groups' mean errors differ, after Henderson's
        (analysis of variance) estimate of their covariance; `between` and `within` are those of
        greatest likelihood, for each of a few values of `rows`. Fewer than two groups tell
        nothing: the defaults are returned. `replay.chosen` finds the shares after this.
        """
        outputs = streams[0].error.shape[1] if streams else 1
        usable = [stream for stream in streams if len(stream.error) > 1]
        if len(usable) < FEWEST_GROUPS:
            return cls.default(outputs, _typical(streams))
        directions = _directions(usable)
        usable = [usable[k] for k in spread(len(usable), MOST_GROUPS)]
        offsets = [Offsets.of(usable, along) for along in directions.T]
        found = {rows: [one.fitted(rows) for one in offsets] for rows in ROWS}
        rows = max(ROWS, key=lambda rows: sum(fit.likelihood for fit in found[rows]))
        between = np.array([fit.between for fit in found[rows]])
        within = np.array([fit.within for fit in found[rows]])
        return cls(rows, between, within, directions, np.zeros_like(directions), len(streams))

    def covariances(self, information: Floats) -> Floats:
        """Return C0 of each direction, for the information of one training row on average."""
        plain = np.linalg.inv(self.rows * information)
        found = np.repeat(((plain + plain.T) / 2)[None], len(self.between), 0)
        found[:, -1, -1] += self.between
        return found

    def along(self, error: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return c (rows, directions), and the variance of its noise, within v."""
        return error @ self.directions, (variance @ self.directions**2) * self.within


def _typical(streams: Sequence[GroupStream]) -> float:
    """Return the mean predicted variance; that of the target's scale without rows."""
    return float(np.mean([stream.variance.mean() for stream in streams])) if streams else 1.0


def _directions(streams: Sequence[GroupStream]) -> Floats:
    """Return the leading eigenvectors of B = mean_g m_g m_g^T - mean_g W / n_g."""
    outputs = streams[0].error.shape[1]
    if outputs == 1:
        return np.ones((1, 1))
    means = np.stack([stream.error.mean(0) for stream in streams])
    left = [stream.error - mean for stream, mean in zip(streams, means, strict=True)]
    rows = np.array([len(stream.error) for stream in streams])
    within = sum(one.T @ one for one in left) / (rows - 1).sum()
    between = means.T @ means / len(means) - within * np.mean(1 / rows)
    values, vectors = np.linalg.eigh(between)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    wanted = np.searchsorted(np.cumsum(values), EXPLAINED * values.sum()) + 1
    kept = vectors[:, : min(int(wanted), MOST_DIRECTIONS, outputs)]
    signs = np.where(kept.sum(0) < 0, -1.0, 1.0)
    found: Floats = kept * signs
    return found
