"""Vectors that stand for levels, learnt from the targets where there are too many for one-hot.

Of each level l with n_l rows, and of what a linear fit of the other inputs leaves of targets, r:

    mean      n_l / (n_l + k) (mean_l(r) - mean(r)),   k = variance within levels / between them
    slopes    the same of r z_j, for each other number z_j; on their principal axes, at most 4
    spread    log sqrt((n_l var_l(r) + 10 var) / ((n_l + 9) var)), of numbers alone

The first is what a model with a random effect of the level expects of it, the second tells levels
apart that turn the effect of an input, the third tells noisy levels from quiet ones. Of classes the
targets are their indicators; more than 8 targets are turned to their 8 principal axes. A level that
was never seen is 0, and so is a missing value where none was.

A row's own target must not be in its vector: the network would trust it too much. So rows are dealt
into folds, whole blocks of equal inputs or one group, and while the network is trained each row
reads the vectors of the other folds, which lie below the table of all rows: its code is then that
of its level, of the block 1 + fold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.data.columns import one_hot
from rdeepsense.data.rows import FitRows
from rdeepsense.encoding import Category, Encoding

FOLDS = 5
MOST_AXES, SLOPE_AXES = 8, 4
MOST_LINEAR = 128  # inputs of the linear fit
MOST_SLOPES = 64  # products of targets and inputs
LEAST_SLOPE = 0.02  # of a standard deviation of the targets: what is less is chance
LINEAR_ROWS = 100_000
RIDGE = 1e-3  # of a row's variance
SPREAD_ROWS = 10.0  # as many as count for the spread of all
LEAST_BETWEEN = 1e-6  # of the variance within
FURTHEST = 5.0  # of a spread, which is a logarithm, and of an input in standard deviations
TINY = float(np.finfo(float).tiny)

Sums = tuple[Floats, Floats, Floats]  # of each level its weight, and sums of values and squares


def with_vectors(rows: FitRows, encoding: Encoding, classes: int | None) -> FitRows:
    """Fill the tables of levels from the rows of a fit; `classes` is None for numbers.

    The codes of levels whose vectors are learnt become those of the folds, in the rows themselves.
    """
    part = rows.rows
    categories, open_ones = [], []
    for k, category in enumerate(encoding.categories):
        vectors = one_hot(category, rows.X[:, category.column])
        open_ones += [k] * (vectors is None)
        categories.append(category if vectors is None else replace(category, vectors=vectors))
    if open_ones:
        fold = np.zeros(len(rows.X), np.int64)
        fold[part.index] = part.folds(FOLDS, rows.seed)
        left = [c for k, c in enumerate(categories) if k not in open_ones]
        known = Encoding(encoding.inputs, encoding.flagged, tuple(left))
        y = scaled_targets(rows.y[part.index], classes)
        left_out = [encoding.categories[k].column for k in open_ones]
        known_of = _known(rows, known, left_out, y)
        for k in open_ones:
            categories[k] = _learnt(encoding.categories[k], rows, fold, known_of, classes is None)
    return replace(rows, encoding=replace(encoding, categories=tuple(categories)))


def scaled_targets(y: NDArray[Any], classes: int | None) -> Floats:
    """Return targets (rows, outputs) of variance about 1; of classes their indicators."""
    if classes is not None:
        indicators: Floats = np.eye(classes)[y][:, 1 if classes == 2 else 0 :]
        return indicators
    columns = y.reshape(len(y), -1).astype(np.float64)
    with np.errstate(all="ignore"):
        scaled: Floats = (columns - columns.mean(0)) / np.maximum(columns.std(0), TINY)
    return scaled


@dataclass(frozen=True)
class _Known:
    """What is known of rows beside their levels: the rest of the targets, and scaled numbers."""

    residual: Floats
    numbers: Floats

    def products(self) -> Iterable[Floats]:
        """Yield the product of each target and each number; none where they are many."""
        if self.residual.shape[1] * self.numbers.shape[1] <= MOST_SLOPES:
            for target in self.residual.T:
                yield from (target * number for number in self.numbers.T)


def _known(rows: FitRows, encoding: Encoding, left_out: list[int], y: Floats) -> _Known:
    """Take a linear fit of the other inputs off the targets; none where there are too many."""
    part = rows.rows
    numbers = np.array([k not in left_out for k in encoding.numbers])
    if not 0 < encoding.width - len(left_out) <= MOST_LINEAR:
        centred: Floats = y - np.average(y, axis=0, weights=part.weight)
        return _Known(centred, np.zeros((len(y), 0)))
    wide = encoding.expand(rows.X[part.index])
    wide = wide[:, np.r_[numbers, np.ones(wide.shape[1] - len(numbers), np.bool_)]]
    design: Floats = np.asarray(wide, np.float64)
    with np.errstate(all="ignore"):
        design = design - np.nanmean(design, axis=0)
        design = design / np.maximum(np.nanstd(design, axis=0), TINY)
    design = np.nan_to_num(np.clip(design, -FURTHEST, FURTHEST))
    design = np.column_stack([design, np.ones(len(design))])
    some = slice(None, None, -(-len(design) // LINEAR_ROWS))
    weighted = design[some] * part.weight[some, None]
    gram = weighted.T @ design[some] + RIDGE * part.weight[some].sum() * np.eye(design.shape[1])
    residual: Floats = y - design @ np.linalg.solve(gram, weighted.T @ y[some])
    return _Known(residual, design[:, : int(numbers.sum())])


def _learnt(
    category: Category, rows: FitRows, fold: Integers, known: _Known, spread: bool
) -> Category:
    """Learn the vectors of a category, and give its rows the codes of their folds."""
    part, column = rows.rows, category.column
    blank = replace(category, vectors=np.zeros((category.block, 1)))
    place = blank.rows(rows.X[:, column])[part.index]
    at, weight = place + category.block * fold[part.index], part.weight / part.weight.mean()
    found = [_statistics(*sums) for sums in _sums(at, weight, category.block, known.residual.T)]
    count = np.bincount(place, weight, category.block).astype(np.float64)
    means, spreads = [mean for mean, _ in found], [wide for _, wide in found]
    outputs = known.residual.shape[1]
    axes = np.eye(outputs) if outputs <= MOST_AXES else _axes(means[0], count, MOST_AXES, 0.0)
    parts = [np.concatenate([mean @ axes for mean in means])]
    if spread and outputs <= MOST_AXES:
        parts.append(np.concatenate(spreads))
    slopes = [_statistics(*sums)[0] for sums in _sums(at, weight, category.block, known.products())]
    if slopes[0].size:
        axes = _axes(slopes[0], count, SLOPE_AXES, LEAST_SLOPE)
        parts.append(np.concatenate([slope @ axes for slope in slopes]))
    vectors = np.hstack(parts).astype(np.float32).astype(np.float64)
    rows.X[part.index, column] = place + category.block * (1 + fold[part.index])
    return replace(category, vectors=vectors)


def _sums(at: Integers, weight: Floats, block: int, columns: Iterable[Floats]) -> list[Sums]:
    """Return the sums over all rows, and then over all but those of each fold.

    `at` is the level of each row, of the block of its fold.
    """

    def sums(values: Floats) -> Floats:
        total: Floats = np.bincount(at, values, FOLDS * block).astype(np.float64)
        return total.reshape(FOLDS, block)

    count, first, second = sums(weight), [], []
    for column in columns:
        first.append(sums(weight * column))
        second.append(sums(weight * column**2))
    shape = (FOLDS, block, 0)
    a = np.stack(first, axis=-1) if first else np.zeros(shape)
    b = np.stack(second, axis=-1) if second else np.zeros(shape)
    whole = count.sum(0), a.sum(0), b.sum(0)
    rest = [(whole[0] - count[k], whole[1] - a[k], whole[2] - b[k]) for k in range(FOLDS)]
    return [whole, *rest]


def _axes(means: Floats, count: Floats, most: int, least: float) -> Floats:
    """Return the principal axes (columns, axes) along which levels differ by `least` or more."""
    weighted = means * np.sqrt(count / count.sum())[:, None]
    _, size, axes = np.linalg.svd(weighted, full_matrices=False)
    chosen: Floats = axes[:most][size[:most] >= least].T
    return chosen


def _statistics(count: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the spread of each level, (levels, outputs), from its sums."""
    seen = count > 1e-9 * count.sum()  # a difference of sums is 0 only about
    count = np.where(seen, count, 0.0)
    n, total = count[:, None], count.sum()
    first, second = np.where(seen[:, None], first, 0.0), np.where(seen[:, None], second, 0.0)
    mean = first.sum(0) / total
    own = first / np.maximum(n, TINY)
    inside = np.maximum(second - n * own**2, 0.0)
    levels = int(seen.sum())
    within = np.maximum(inside.sum(0) / max(total - levels, 1.0), TINY)
    apart = (n * (own - mean) ** 2).sum(0) - (levels - 1) * within
    between = apart / max(total - (count**2).sum() / total, TINY)
    k = within / np.maximum(between, LEAST_BETWEEN * within)
    shrunk = np.where(seen[:, None], n / (n + k) * (own - mean), 0.0)
    free = np.maximum(n - 1, 0.0) + SPREAD_ROWS
    ratio = (inside + SPREAD_ROWS * within) / (free * within)
    spread = 0.5 * np.log(np.maximum(ratio, TINY))
    return shrunk, np.clip(np.where(seen[:, None], spread, 0.0), -FURTHEST, FURTHEST)
