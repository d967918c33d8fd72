"""Novelty: densities of hidden features that tell rows unlike the training rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning

from rdeepsense._torch import quiet
from rdeepsense.arrays import Floats, Integers, Singles
from rdeepsense.compact_novelty import BYTE, SCORE_STEP, CompactNovelty, gaussian_bytes, table_bytes
from rdeepsense.errors import InputError

# --------------------------------------------------------------------------------------------------
# Novelty: how unlike the known rows an input is
#
# A density of the inputs x, column by column first, then of all columns together:
#
#     t = ((x - mean) / std + normal score of x) / 2
#     h = the whitened principal components of t, 40 at most
#     surprise = -log sum_c w_c N(h; m_c, S_c), a Gaussian mixture
#     novelty = the share of rows held out whose surprise is at most that of x
#
# The normal score is the standard normal's quantile at the share of known values below x. It tells
# a reading that is smaller than all others, which in a skewed column is close to many of them; the
# standard score tells a gap that no known reading falls into.
#
# A window is described by five numbers for each channel: mean, standard deviation, lowest and
# highest reading, standard deviation of the steps. Both deviations of a stuck channel are 0.
# --------------------------------------------------------------------------------------------------

FEWEST_ROWS, MOST_ROWS, MOST_HELD_OUT = 10, 10_000, 2_048
HELD_OUT = 0.2
SCORES = np.linspace(-3, 3, 13)  # where a column's values are known by their normal score
EDGE = 2  # knots from the first one to the one whose score is 1 nearer to 0
STEEPEST = 1e-3  # standard deviations in which the normal score may fall by 1 beyond the knots
CONSTANT = 1e-6  # a standard deviation that is rounding
COMPONENTS, LEAST_STD = 40, 1e-2
ROWS_EACH, MOST_GAUSSIANS = 6, 64  # rows for each Gaussian and component
RIDGE, STEPS = 1e-3, 25
FARTHEST = 1e6  # so that squares stay finite
CHUNK = 4_096


@dataclass(frozen=True)
class Novelty:
    """A fitted density: of each column, of the components, and of the rows held out."""

    mean: Singles
    std: Singles
    knots: Singles  # (scores, columns)
    centre: Singles
    axes: Singles  # (columns, components), which also whiten
    shares: Singles  # of the Gaussians
    means: Singles
    factors: Singles  # F F^T = S^-1 of each Gaussian
    held_out: Floats  # the surprise of each row held out, in order

    @classmethod
    def fit(
        cls, rows: NDArray[Any], held_out: NDArray[Any], *, most_gaussians: int = MOST_GAUSSIANS
    ) -> Novelty:
        """Fit the density to standardised rows, or windows; see `bounded`."""
        from sklearn.decomposition import PCA  # slow to import, and predictions do without
        from sklearn.mixture import GaussianMixture

        x = described(rows)
        spread = x.std(0)
        std = _stored(np.where(spread > CONSTANT, spread, 1.0))
        mean, knots = _stored(x.mean(0)), _stored(np.quantile(x, ndtr(SCORES), axis=0))
        t = column_scores(x, mean, std, knots)
        size = min(COMPONENTS, t.shape[1], len(t) - 1)
        with np.errstate(invalid="ignore"):  # shares of no variance, if all columns are constant
            pca = PCA(size, random_state=0).fit(t)
        centre = _stored(pca.mean_)
        axes = _stored(pca.components_.T / np.sqrt(pca.explained_variance_ + LEAST_STD**2))
        gaussians = int(np.clip(len(t) // (ROWS_EACH * size), 1, most_gaussians))
        mixture = GaussianMixture(gaussians, reg_covar=RIDGE, max_iter=STEPS, random_state=0)
        with quiet(ConvergenceWarning):  # one that could still be improved is a density as well
            mixture.fit((t - centre) @ axes)
        shares, means = _stored(mixture.weights_), _stored(mixture.means_)
        factors = _stored(mixture.precisions_cholesky_)
        found = cls(mean, std, knots, centre, axes, shares, means, factors, np.empty(0))
        return replace(found, held_out=np.sort(found.surprise(held_out)))

    def surprise(self, rows: NDArray[Any]) -> Floats:
        """Return -log density of each row's components."""
        found = np.empty(len(rows))
        for start in range(0, len(rows), CHUNK):
            t = column_scores(
                described(rows[start : start + CHUNK]), self.mean, self.std, self.knots
            )
            h = (t - self.centre) @ self.axes.astype(float)
            logs = [
                np.log(share)
                + np.log(np.diag(factor)).sum()
                - np.square((h - mean) @ factor).sum(1) / 2
                for share, mean, factor in zip(
                    self.shares.astype(float), self.means, self.factors.astype(float), strict=True
                )
            ]
            constant = h.shape[1] / 2 * np.log(2 * np.pi)
            found[start : start + CHUNK] = constant - np.logaddexp.reduce(logs)
        return found

    def novelty(self, rows: NDArray[Any]) -> Floats:
        """Return the share of rows held out that are at most as surprising, between 0 and 1.

        It is interpolated between them. Beyond the most surprising one it goes on towards 1, so
        that rows can be ranked there too; below the least surprising one towards 0.
        """
        surprise, known = self.surprise(rows), self.held_out
        share = np.interp(surprise, known, np.arange(1, len(known) + 1) / (len(known) + 1))
        width = (known[-1] - np.median(known)) or 1.0
        away = np.abs(surprise - np.clip(surprise, known[0], known[-1])) / width
        found: Floats = np.where(
            surprise > known[-1], 1 - (1 - share) / (1 + away), share / (1 + away)
        )
        return found


def bounded(
    X: NDArray[Any],
    held_out: NDArray[Any] | None,
    most_rows: int = MOST_ROWS,
    most_held_out: int = MOST_HELD_OUT,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw rows to fit and rows held out at random, at most 10,000 and 2,048.

    A fifth of X is held out where no other rows are given.
    """
    order = np.random.default_rng(0).permutation(len(X))
    if held_out is None:
        cut = round(HELD_OUT * len(X))
        held_out, order = X[order[:cut][:most_held_out]], order[cut:]
    elif len(held_out) > most_held_out:
        some = np.random.default_rng(0).permutation(len(held_out))
        held_out = held_out[some[:most_held_out]]
    if min(len(order), len(held_out)) < FEWEST_ROWS:
        raise InputError(
            f"novelty has {len(order)} rows to learn from and {len(held_out)} held out; at least "
            f"{FEWEST_ROWS} of each are needed"
        )
    return X[order[:most_rows]], held_out


def described(rows: NDArray[Any]) -> Floats:
    """Return a table as it is, windows (rows, time, channels) as five numbers for each channel."""
    x = rows.astype(float)
    if x.ndim == 2:
        return x
    steps = np.diff(x, axis=1, prepend=x[:, :1])
    return np.hstack([x.mean(1), x.std(1), x.min(1), x.max(1), steps.std(1)])


def column_scores(x: Floats, mean: Singles, std: Singles, knots: Singles) -> Floats:
    """Return the mean of standard and normal score.

    Between knots the normal score is interpolated; where several knots are one value, as in a
    column of few values, theirs is the mean of their scores. Beyond the outermost knots, at -3 and
    3, it goes on as fast as it does on average from there to -2 and 2.
    """
    found = (x - mean) / std
    low, high = knots[EDGE] - knots[0], knots[-1] - knots[-1 - EDGE]
    low, high = (np.clip(edge, STEEPEST * std, std) for edge in (low, high))
    for column, own in enumerate(knots.T.astype(float)):
        values, place = np.unique(own, return_inverse=True)
        scores = np.bincount(place, SCORES) / np.bincount(place)
        here = x[:, column]
        normal = np.interp(here, values, scores)
        normal += np.minimum(here - values[0], 0) / low[column]
        normal += np.maximum(here - values[-1], 0) / high[column]
        found[:, column] += normal
    return np.clip(found / 2, -FARTHEST, FARTHEST)


def _stored(array: NDArray[Any]) -> Singles:
    """Round as a model file does, so that a model and its copy from a file agree exactly."""
    return np.array(array, np.float32, order="C")


# --------------------------------------------------------------------------------------------------
# Samples from the density of a novelty
# --------------------------------------------------------------------------------------------------

DRAWN = 4_096
FAR = 100.0  # standard deviations beyond the knots


def drawn_columns(novelty: Novelty, rows: int = DRAWN, seed: int = 0) -> Floats:
    """Draw scaled columns (rows, columns).

    Of the components h = (t - centre) axes, with orthogonal axes, t = centre + h axes / |axes|^2;
    a column is where its score, which rises all along, is t.
    """
    rng = np.random.default_rng(seed)
    shares = novelty.shares.astype(np.float64)
    which = rng.choice(len(shares), rows, p=shares / shares.sum())
    noise = rng.standard_normal((rows, novelty.means.shape[1]))
    h = np.empty_like(noise)
    for k, factor in enumerate(novelty.factors.astype(np.float64)):
        own = which == k
        h[own] = novelty.means[k] + np.linalg.solve(factor.T, noise[own].T).T
    axes = novelty.axes.astype(np.float64)
    t = novelty.centre + (h / np.square(axes).sum(0)) @ axes.T
    reach = FAR * novelty.std
    places = np.vstack([novelty.knots[0] - reach, novelty.knots, novelty.knots[-1] + reach])
    scores = column_scores(places.astype(np.float64), novelty.mean, novelty.std, novelty.knots)
    return np.column_stack(
        [np.interp(own, known, at) for own, known, at in zip(t.T, scores.T, places.T, strict=True)]
    )


# --------------------------------------------------------------------------------------------------
# Novelty for new groups: thresholds from held-out groups
#
# Rows held out at random are of known people, and a new person's rows surprise a density more than
# those do. So the rows of each of K = min(groups, 8) folds of whole groups are scored by a density
# of the other folds, and novelty is the share of these scores that are at most a row's own. Each
# group counts alike, whatever its number of rows: the scores kept are the quantiles i / (n + 1) of
#
#     F(t) = mean over groups of the share of the group's scores that is at most t
# --------------------------------------------------------------------------------------------------

FEWEST_GROUPS, MOST_FOLDS = 3, 8


def drawn(rows: int, most: int = MOST_ROWS) -> NDArray[np.int64]:
    """Draw at most so many rows at random, in their order."""
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])


def fit_across_groups(rows: NDArray[Any], groups: NDArray[Any]) -> Novelty:
    """Fit the density to standardised rows, or windows, and score each group by the others."""
    labels, number = np.unique(groups, return_inverse=True)
    if len(labels) < FEWEST_GROUPS:
        raise InputError(
            f"groups holds {len(labels)} of them; at least {FEWEST_GROUPS} are needed to leave "
            "some out"
        )
    folds = min(len(labels), MOST_FOLDS)
    fold = (np.random.default_rng(0).permutation(len(labels)) % folds)[number]
    surprise = np.empty(len(rows))
    for own in range(folds):
        out = fold == own
        if (known := int((~out).sum())) < FEWEST_ROWS:
            raise InputError(
                f"novelty has {known} rows to learn from without the groups left out; at least "
                f"{FEWEST_ROWS} are needed"
            )
        surprise[out] = Novelty.fit(rows[~out], rows[:0]).surprise(rows[out])
    weight = 1 / np.bincount(number)[number]
    return replace(Novelty.fit(rows, rows[:0]), held_out=quantiles(surprise, weight))


def quantiles(values: Floats, weight: Floats) -> Floats:
    """Return the quantiles i / (n + 1) of weighted values; of equal weights, the values."""
    order = np.argsort(values)
    reached = np.cumsum(weight[order]) / weight.sum()
    count = min(len(values), MOST_HELD_OUT)
    at = np.searchsorted(reached, np.arange(1, count + 1) / (count + 1))
    found: Floats = values[order[np.minimum(at, len(values) - 1)]]
    return found


# --------------------------------------------------------------------------------------------------
# `Novelty.surprise` of one row at a time, with precomputed terms
#
# Its loops over columns and Gaussians become a few products of small matrices: a tenth of a
# millisecond in place of ten for a hundred columns.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowNovelty:
    """A fitted density whose tables are laid out for one row."""

    mean: Floats
    std: Floats
    values: Floats  # (knots, columns), each once, in order, then infinities
    scores: Floats  # of those values
    most: Floats  # the place of the last piece of each column
    edges: tuple[Floats, Floats, Floats, Floats]  # lowest, highest knot, and their slopes
    centre: Floats
    axes: Floats
    means: Floats  # (Gaussians, components), times their factors
    factors: Floats  # (components, Gaussians x components)
    constants: Floats

    @classmethod
    def of(cls, novelty: Novelty) -> Self:
        """Lay out the tables."""
        knots = novelty.knots.astype(np.float64)
        values, scores = np.full(knots.shape, np.inf), np.zeros(knots.shape)
        counts = np.ones(knots.shape[1], np.int64)
        for column, own in enumerate(knots.T):
            each, place = np.unique(own, return_inverse=True)
            counts[column] = len(each)
            values[: len(each), column] = each
            scores[: len(each), column] = np.bincount(place, SCORES) / np.bincount(place)
            scores[len(each) :, column] = scores[len(each) - 1, column]
        low = novelty.knots[EDGE] - novelty.knots[0]
        high = novelty.knots[-1] - novelty.knots[-1 - EDGE]
        low, high = (np.clip(e, STEEPEST * novelty.std, novelty.std) for e in (low, high))
        factors, components = novelty.factors.astype(np.float64), novelty.means.shape[1]
        diagonals = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(1)
        return cls(
            novelty.mean.astype(np.float64),
            novelty.std.astype(np.float64),
            values,
            scores,
            np.maximum(counts - 2, 0).astype(np.float64),
            (knots[0], knots[-1], low.astype(np.float64), high.astype(np.float64)),
            novelty.centre.astype(np.float64),
            novelty.axes.astype(np.float64),
            np.einsum("gc,gcd->gd", novelty.means.astype(np.float64), factors),
            factors.transpose(1, 0, 2).reshape(components, -1),
            np.log(novelty.shares.astype(np.float64))
            + diagonals
            - components / 2 * np.log(2 * np.pi),
        )

    def surprise(self, row: NDArray[Any]) -> float:
        """Return -log density of a row (1, ...)."""
        x = described(row)[0]
        at = np.minimum((self.values <= x).sum(0) - 1, self.most).clip(0).astype(np.int64)
        every = np.arange(len(x))
        left, right = self.values[at, every], self.values[at + 1, every]
        first, second = self.scores[at, every], self.scores[at + 1, every]
        inside = np.clip((x - left) / (right - left), 0.0, 1.0)
        lowest, highest, low, high = self.edges
        normal = first + inside * (second - first)
        normal += np.minimum(x - lowest, 0) / low + np.maximum(x - highest, 0) / high
        t = np.clip(((x - self.mean) / self.std + normal) / 2, -FARTHEST, FARTHEST)
        h = (t - self.centre) @ self.axes
        away = (h @ self.factors).reshape(self.means.shape) - self.means
        logs = self.constants - np.square(away).sum(1) / 2
        top = logs.max()
        return float(-top - np.log(np.exp(logs - top).sum()))


# --------------------------------------------------------------------------------------------------
# Fits of a compact novelty
#
# The score of a column is its standard score, and where its tails are long the mean of standard and
# normal score. The normal score pulls the two sides of a gap together, so it is left to columns
# that need it.
#
# Everything is fitted to the numbers as they are stored: components are those of the rounded axes,
# and the means of Gaussians are put through their rounded factors.
# --------------------------------------------------------------------------------------------------

MOST_BYTES = 8_192  # of tables
WIDEST = 160  # columns
COLUMN_BYTES, AXES_BYTES = 3_200, 2_000
COMPACT_ROWS_EACH = 10  # rows for each Gaussian and component
KNOTS = (2, 6)  # every second of the full novelty's knots, which are 7, or every sixth
MOST_COMPONENTS, COMPACT_MOST_GAUSSIANS = 32, 16
ENOUGH = 1e-3  # nats a row; EM ends at a step that gains less
LLOYD_STEPS = 30
MOST_ENDS = 4.5  # standard deviations; of a normal column the outermost knots lie at 3
COMPACT_STEEPEST = 1e-2  # as of the full novelty, but so that float32 resolves it


@dataclass(frozen=True)
class Marginals:
    """Of each column mean, standard deviation and all knots, as `Novelty` has them."""

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
    fitting = min(
        COMPACT_MOST_GAUSSIANS, left // gaussian_bytes(size), len(t) // (COMPACT_ROWS_EACH * size)
    )
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
    low, high = (np.clip(edge, COMPACT_STEEPEST * known.std, known.std) for edge in (low, high))
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
