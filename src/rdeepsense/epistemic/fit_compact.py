"""A compact novelty from rows: fewer knots, components and Gaussians, most of it in bytes.

The score of a column is its standard score, and where its tails are long the mean of standard and
normal score. The normal score pulls the two sides of a gap together, so it is left to columns that
need it.

Everything is fitted to the numbers as they are stored: components are those of the rounded axes,
and the means of Gaussians are put through their rounded factors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rdeepsense.arrays import Floats, Integers
from rdeepsense.compact_novelty import (
    BYTE,
    SCORE_STEP,
    CompactNovelty,
    gaussian_bytes,
    table_bytes,
)
from rdeepsense.epistemic.novelty import (
    CONSTANT,
    EDGE,
    LEAST_STD,
    RIDGE,
    SCORES,
    STEPS,
    Novelty,
)
from rdeepsense.errors import InputError

MOST_BYTES = 8_192  # of tables
WIDEST = 160  # columns
COLUMN_BYTES, AXES_BYTES = 3_200, 2_000
ROWS_EACH = 10  # rows for each Gaussian and component
KNOTS = (2, 6)  # every second of the full novelty's knots, which are 7, or every sixth
MOST_COMPONENTS, MOST_GAUSSIANS = 32, 16
ENOUGH = 1e-3  # nats a row; EM ends at a step that gains less
LLOYD_STEPS = 30
MOST_ENDS = 4.5  # standard deviations; of a normal column the outermost knots lie at 3
STEEPEST = 1e-2  # as of the full novelty, but so that float32 resolves it


@dataclass(frozen=True)
class Marginals:
    """Of each column mean, standard deviation and all knots, as `epistemic.novelty` has them."""

    mean: Floats
    std: Floats
    knots: Floats  # (scores, columns)

    @classmethod
    def of_rows(cls, x: Floats) -> Marginals:
        """Take them of the columns of rows."""
        spread = x.std(0)
        std = np.where(spread > CONSTANT, spread, 1.0)
        return cls(x.mean(0), std, np.quantile(x, ndtr(SCORES), axis=0))

    @classmethod
    def of_novelty(cls, novelty: Novelty, columns: int) -> Marginals:
        """Take those of the first columns of a full novelty."""
        parts = (novelty.mean, novelty.std, novelty.knots)
        return cls(*(part[..., :columns].astype(np.float64) for part in parts))


@dataclass(frozen=True)
class Units:
    """What raw columns are of scaled ones: shift + scale x; and what a missing input counts as."""

    shift: Floats
    scale: Floats
    centre: Floats

    @classmethod
    def of(cls, shift: Floats, scale: Floats, window: bool) -> Units:
        """Take those of inputs; of windows, of the five numbers that describe each channel."""
        if not window:
            return cls(shift, scale, shift)
        none = np.zeros_like(shift)
        return cls(np.hstack([shift, none, shift, shift, none]), np.tile(scale, 5), shift)


def fit_compact(x: Floats, known: Marginals, units: Units) -> CompactNovelty:
    """Fit a density to the scaled columns of rows; its threshold is left open.

    It is put into raw units, in which a device has its inputs.
    """
    columns = x.shape[1]
    if columns > WIDEST:
        raise InputError(
            f"a novelty of {columns} columns does not fit into {MOST_BYTES:,} bytes; at most "
            f"{WIDEST} columns, of windows {WIDEST // 5} channels"
        )
    every = KNOTS[0] if table_bytes(columns, 7, 0, 0) <= COLUMN_BYTES else KNOTS[1]
    found = _columns(known, units, every)
    t = found.column_scores(units.shift + x * units.scale)
    size = min(columns, MOST_COMPONENTS, AXES_BYTES // columns, len(t) - 1)
    axes, axis_steps = _axes(t, size)
    found = replace(found, axes=axes, axis_steps=axis_steps)
    left = MOST_BYTES - table_bytes(columns, found.knots.shape[1], size, 0)
    fitting = min(MOST_GAUSSIANS, left // gaussian_bytes(size), len(t) // (ROWS_EACH * size))
    weights, centres, precisions = _mixture(t @ (axes * axis_steps), max(1, fitting))
    factors, steps = _rounded(precisions)
    whole = factors * steps[:, None, :]
    constants = np.log(weights) - size / 2 * np.log(2 * np.pi)
    # A row of zeros in rounded factors cannot be: the largest of a column is 127.
    constants += np.log(np.abs(np.diagonal(precisions, 0, 1, 2))).sum(1)
    means = np.einsum("gk,gkl->gl", centres, whole)
    # The likeliest first: those after it are soon known to be further away.
    order = np.argsort(-weights, kind="stable")
    return replace(
        found,
        factors=factors[order],
        factor_steps=steps[order],
        means=_single(means)[order],
        constants=_single(constants)[order],
    )


def _columns(known: Marginals, units: Units, every: int) -> CompactNovelty:
    """Return a novelty that has its columns alone, in raw units."""
    low, high = known.knots[EDGE] - known.knots[0], known.knots[-1] - known.knots[-1 - EDGE]
    low, high = (np.clip(edge, STEEPEST * known.std, known.std) for edge in (low, high))
    knots = _single((units.shift + known.knots[::every] * units.scale).T)
    scores = np.empty_like(knots)
    for own, row in zip(knots, scores, strict=True):
        _, place = np.unique(own, return_inverse=True)
        row[:] = (np.bincount(place, SCORES[::every]) / np.bincount(place))[place]
    mean = units.shift + known.mean * units.scale
    rates = [0.5 / (part * units.scale) for part in (known.std, low, high)]
    ends = np.maximum(known.mean - known.knots[0], known.knots[-1] - known.mean)
    plain = ends <= MOST_ENDS * known.std
    rates[0] = np.where(plain, 2 * rates[0], rates[0])
    rates[1:] = [np.where(plain, 0.0, rate) for rate in rates[1:]]
    scores[plain] = 0.0
    lines = _single(np.column_stack([mean, *rates]))
    open_yet = ("axes", "axis_steps", "factors", "factor_steps", "means", "constants")
    return CompactNovelty(
        centre=_single(units.centre),
        lines=lines,
        knots=knots,
        scores=np.rint(scores / 2 / SCORE_STEP),
        threshold=np.zeros(1),
        **dict.fromkeys(open_yet, np.empty(0)),
    )


def _axes(t: Floats, size: int) -> tuple[Floats, Floats]:
    """Return the leading axes that whiten t, as whole numbers and a step of each."""
    variance, vectors = np.linalg.eigh(np.atleast_2d(np.cov(t.T)))
    leading = np.argsort(-variance, kind="stable")[:size]
    axes = vectors[:, leading] / np.sqrt(np.maximum(variance[leading], 0.0) + LEAST_STD**2)
    # Either sign of an axis is right; this one does not depend on the machine.
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(size)])
    whole, steps = _rounded(axes[None])
    return whole[0], steps[0]


def _mixture(h: Floats, count: int) -> tuple[Floats, Floats, Floats]:
    """Fit a Gaussian mixture by EM from the clusters of k-means.

    Returns weights, means, and F of each Gaussian, upper triangular with F F^T = S^-1. A status
    needs it at every fit: scikit-learn's takes several times as long for a thousand rows.
    """
    rows, size = h.shape
    share = np.zeros((rows, count))
    share[np.arange(rows), _clusters(h, count)] = 1.0
    before = -np.inf
    for _ in range(STEPS):
        total = share.sum(0) + 10 * np.finfo(float).eps
        means = share.T @ h / total[:, None]
        spread = np.stack([(h * own[:, None]).T @ h for own in share.T]) / total[:, None, None]
        spread -= means[:, :, None] * means[:, None, :]
        # Rounding can leave a negative variance beside large means; the ridge is far larger.
        spread += RIDGE * np.eye(size)
        factors = np.linalg.inv(np.linalg.cholesky(spread)).transpose(0, 2, 1)
        weights = total / total.sum()
        away = (h @ factors.transpose(1, 0, 2).reshape(size, -1)).reshape(rows, count, size)
        away -= np.einsum("gk,gkl->gl", means, factors)
        constants = np.log(weights) + np.log(np.diagonal(factors, 0, 1, 2)).sum(1)
        logs = constants - np.square(away).sum(2) / 2
        top = logs.max(1, keepdims=True)
        share = np.exp(logs - top)
        likelihood = share.sum(1, keepdims=True)
        share /= likelihood
        now = float((np.log(likelihood) + top).mean())
        if now - before < ENOUGH:
            break
        before = now
    return weights, means, factors


def _clusters(h: Floats, count: int) -> Integers:
    """Return the cluster of each row: seeds drawn far from each other, then Lloyd's steps."""
    rng = np.random.default_rng(0)
    squares = np.square(h).sum(1)

    def distances(centres: Floats) -> Floats:
        found: Floats = squares[:, None] - 2 * h @ centres.T + np.square(centres).sum(1)
        return np.clip(found, 0.0, None)

    centres = np.empty((count, h.shape[1]))
    centres[0], nearest = h[rng.integers(len(h))], np.full(len(h), np.inf)
    for k in range(1, count):
        nearest = np.minimum(nearest, distances(centres[k - 1 : k])[:, 0])
        reached = np.cumsum(nearest)
        centres[k] = h[min(np.searchsorted(reached, rng.random() * reached[-1]), len(h) - 1)]
    found: Integers = distances(centres).argmin(1)
    for _ in range(LLOYD_STEPS):
        members = np.zeros((len(h), count))
        members[np.arange(len(h)), found] = 1.0
        sizes = members.sum(0)
        moved = members.T @ h / np.maximum(sizes, 1.0)[:, None]
        centres = np.where(sizes[:, None] > 0, moved, centres)
        last, found = found, distances(centres).argmin(1)
        if np.array_equal(last, found):
            break
    return found


def _rounded(matrices: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return whole numbers from -127 to 127, and the step of each column."""
    largest = np.abs(matrices).max(1)
    steps = _single(np.where(largest > 0, largest, 1.0) / BYTE)
    whole = np.clip(np.rint(matrices / steps[:, None, :]), -BYTE, BYTE)
    return whole, steps


def _single(values: Floats) -> Floats:
    """Round to float32, which a device has."""
    return values.astype(np.float32).astype(np.float64)
