"""Novelty: how unlike the known rows an input is, whatever the network makes of it.

A density of the inputs x, column by column first, then of all columns together:

    t = ((x - mean) / std + normal score of x) / 2
    h = the whitened principal components of t, 40 at most
    surprise = -log sum_c w_c N(h; m_c, S_c), a Gaussian mixture
    novelty = the share of rows held out whose surprise is at most that of x

The normal score is the standard normal's quantile at the share of known values below x. It tells a
reading that is smaller than all others, which in a skewed column is close to many of them; the
standard score tells a gap that no known reading falls into.

A window is described by five numbers for each channel: mean, standard deviation, lowest and highest
reading, standard deviation of the steps. Both deviations of a stuck channel are 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning

from rdeepsense.arrays import Floats, Singles
from rdeepsense.errors import InputError
from rdeepsense.process_wide import quiet

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
