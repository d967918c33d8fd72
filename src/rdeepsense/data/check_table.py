"""A table as the pre-flight check sees it, and the statistics of dependence that it uses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc

from rdeepsense.arrays import Booleans, Floats, Integers
from rdeepsense.data.columns import (
    LABELS,
    NUMBERS,
    Categorical,
    Columns,
    as_numpy,
    holds_dates,
    is_missing,
    moments_of,
)
from rdeepsense.data.splits import row_hashes
from rdeepsense.errors import InputError

# --------------------------------------------------------------------------------------------------
# Statistics of dependence between rows, and between a column and the target
#
# All are vectorized and take a bounded number of rows; `check` draws these and chooses the bounds.
# --------------------------------------------------------------------------------------------------

ROWS_A_LEVEL = 2.5  # at least, of a column whose levels recur
MOST_LINEAR = 200  # columns
TREND, LEVELS_A_DEGREE = 3, 8  # degree of the trend over levels, and levels for each degree
FOLDS = 3
NEIGHBORS = 64  # nearest rows that are compared
QUERIES = 256  # rows whose neighbors are looked for
GAP = 20.0  # of distances, between near-copies and the next rows; see `near_copies`
LEAST_GAP = 8.0
NEAR_SHARE = 0.25  # of rows that have near-copies
SAME = 0.9  # of near-copies have equal discrete columns
DIMENSIONS = 32  # that distances are taken in
ALIKE = 0.7  # lag-1 autocorrelation; of 200 independent rows it is below 0.2
CHANGING = 0.3  # of the steps, at least; a quantized signal often stays
REGULAR = 0.75  # of the steps are within half of the usual one; workdays have 0.8, chance 0.35
ORDERED_ROWS = 50
PAIRS = 64  # of windows that are compared
FEWEST_RECORDINGS, STRETCHES = 5, 10


def correlation(x: Floats, y: Floats) -> float:
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0


def explained_in_order(x: Floats, y: Floats) -> float:
    """Return the share of y's variance that a smooth function of x explains.

    It is that of a line, or that of the ranks of y: in the order of x, a rank is compared with the
    mean of its two neighbors. Rows with equal x stay in the random order of the sample.
    """
    own = ranks(y)[np.argsort(x, kind="stable")]
    errors = own[1:-1] - (own[:-2] + own[2:]) / 2
    variance = float(own.var())
    in_order = 1 - float(np.mean(errors**2)) / (1.5 * variance) if variance > 0 else 0.0
    return max(in_order, correlation(x, y) ** 2)


def ranks(values: Floats) -> Floats:
    """Return the place of each value in the order of all; the mean place of equal ones."""
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    places: Floats = (np.cumsum(counts) - (counts - 1) / 2)[number.reshape(-1)]
    return places


def ranked(columns: Floats) -> Floats:
    """Return the ranks of each column's values as shares of the rows."""
    return np.column_stack([ranks(values) for values in columns.T]) / len(columns)


def explained_by_levels(x: Floats, y: Floats) -> float:
    """Return the share of y's variance that the mean of the other rows of a level explains."""
    number = np.unique(x, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(number)
    if len(counts) * ROWS_A_LEVEL > len(x):
        return 0.0
    sums = np.bincount(number, weights=y)
    several = counts[number] > 1
    others = (sums[number] - y)[several] / (counts[number][several] - 1)
    variance = float(y.var())
    lost = float(((y[several] - others) ** 2).sum()) + float((~several).sum()) * variance
    return 1 - lost / (len(y) * variance) if variance > 0 else 0.0


def purity(x: Floats, y: Integers) -> float:
    """Return how well the other rows of a level tell a row's class: 0 is chance, 1 always."""
    number = np.unique(x, return_inverse=True)[1].reshape(-1)
    levels, classes = int(number.max()) + 1, int(y.max()) + 1
    if levels * ROWS_A_LEVEL > len(x) or levels * classes > 10**7:
        return 0.0
    table = np.bincount(number * classes + y, minlength=levels * classes).reshape(levels, classes)
    others = table[number]
    others[np.arange(len(y)), y] -= 1
    several = others.sum(axis=1) > 0
    right = float((others.argmax(axis=1) == y)[several].sum()) / len(y)
    chance = float(np.bincount(y).max()) / len(y)
    return (right - chance) / (1 - chance)


def purity_in_order(x: Floats, y: Integers) -> float:
    """Return how seldom the class changes in the order of x: 0 is chance, 1 once for each class."""
    own = y[np.argsort(x, kind="stable")]
    shares = np.bincount(y) / len(y)
    expected = (len(y) - 1) * (1 - float((shares**2).sum()))
    changes = int((own[1:] != own[:-1]).sum()) - int(np.count_nonzero(shares)) + 1
    return 1 - max(0, changes) / expected


def tree_residuals(X: Floats, responses: Floats, number: Integers | None = None) -> Floats:
    """Return the out-of-fold residuals of boosted trees; rows of one `number` are in one fold."""
    fold = np.random.default_rng(0).permutation(len(X)) % FOLDS
    if number is not None:
        fold = fold[np.unique(number, return_inverse=True)[1].reshape(-1)]
    found = np.empty_like(responses)
    for held in range(FOLDS):
        found[fold == held] = held_out_residuals(X, responses, fold == held)
    return found


def held_out_residuals(X: Floats, responses: Floats, held: Booleans) -> Floats:
    """Return the residuals of boosted trees on rows that they were not trained on."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # late: it takes long to import

    found = np.empty((int(held.sum()), responses.shape[1]))
    for k in range(responses.shape[1]):
        trees = HistGradientBoostingRegressor(
            max_iter=30,
            learning_rate=0.2,
            max_leaf_nodes=8,
            min_samples_leaf=max(2, min(20, len(X) // 50)),
            early_stopping=False,
            random_state=0,
        ).fit(X[~held], responses[~held, k])
        found[:, k] = responses[held, k] - trees.predict(X[held])
    return found


def worse_on_new_levels(number: Integers, known: Floats, new: Floats) -> tuple[float, float]:
    """Compare squared residuals of rows of held-out levels with those of held-out rows.

    Returns their ratio, and how many standard errors between levels it is above 1: of the sums over
    all rows, or of the geometric mean over levels, which a few large residuals do not decide.
    """
    number = np.unique(number, return_inverse=True)[1].reshape(-1)
    before, after = (np.bincount(number, weights=(one**2).mean(axis=1)) for one in (known, new))
    count, least = len(before), 1e-3 * float(before.mean())
    if count < 2 or least <= 0:
        return 1.0, 0.0
    found = []
    for gain, ratio in (
        (after - before, float(after.sum() / before.sum())),
        (each := np.log((after + least) / (before + least)), float(np.exp(each.mean()))),
    ):
        error = float(gain.std(ddof=1)) / np.sqrt(count)
        found.append((ratio, float(gain.mean()) / error if error > 0 else 0.0))
    return max(found, key=lambda one: one[1])


def is_crossed(number: Integers, values: Floats) -> bool:
    """Tell whether values are as frequent in each level as in all, as in a factorial design."""
    value = np.unique(np.nan_to_num(values, nan=np.inf), return_inverse=True)[1].reshape(-1)
    number = np.unique(number, return_inverse=True)[1].reshape(-1)
    levels, kinds = int(number.max()) + 1, int(value.max()) + 1
    if levels < 2 or kinds < 2:
        return True
    found = np.bincount(number * kinds + value, minlength=levels * kinds).reshape(levels, kinds)
    wanted = np.outer(found.sum(axis=1), found.sum(axis=0)) / len(number)
    return float(((found - wanted) ** 2 / wanted).sum()) < (levels - 1) * (kinds - 1)


def linear_residuals(X: Floats, responses: Floats) -> Floats:
    """Return the residuals of a ridge regression on a few of the columns at most."""
    X = X[:, :MOST_LINEAR]
    shift, scale = scale_of(X) if X.shape[1] else (np.zeros(0), np.ones(0))
    own = np.clip(np.where(np.isnan(X), 0.0, (X - shift) / scale), -10, 10)
    design = np.column_stack([np.ones(len(X)), own])
    gram = design.T @ design + 1e-3 * len(X) * np.eye(design.shape[1])
    return cast(Floats, responses - design @ np.linalg.solve(gram, design.T @ responses))


@dataclass(frozen=True)
class Likeness:
    """How alike the rows of a level are, beyond a smooth trend over the levels in their order.

    A quantity such as an age has such a trend: a polynomial of degree 3 (1 below 16 levels, 2
    below 24). An identifier loses little by it.

    Parameters
    ----------
    intraclass : the correlation of two rows of one level.
    ratio : the F ratio of the variance between levels and that within.
    chance : the probability of such a ratio among independent rows.
    order : the von Neumann ratio of the ranks of level means: mean square of successive differences
        over variance. It is about 2 where levels have no order, and less for quantities.
    levels : how many there are.
    """

    intraclass: float
    ratio: float
    chance: float
    order: float
    levels: int

    @classmethod
    def of(cls, number: Integers, values: Floats) -> Likeness:
        """Compare rows by their level, in all columns of `values` together."""
        number = np.unique(number, return_inverse=True)[1].reshape(-1)
        counts = np.bincount(number).astype(np.float64)
        rows, levels = len(number), len(counts)
        if levels < 3 or rows <= levels:
            return cls(0.0, 0.0, 1.0, 2.0, levels)
        degree = min(TREND, levels // LEVELS_A_DEGREE)
        weight = np.sqrt(counts)
        trend = legvander(np.linspace(-1, 1, levels), degree)
        trend = np.linalg.qr(trend * weight[:, None])[0]
        left = levels - 1 - degree
        between = within = steps = total = 0.0
        for column in values.T:
            means = np.bincount(number, weights=column) / counts
            other = weight * means
            other -= trend @ (trend.T @ other)
            between += float((other**2).sum()) / left
            within += float(((column - means[number]) ** 2).sum()) / (rows - levels)
            place = ranks(means)
            steps += float(np.mean(np.diff(place) ** 2))
            total += float(place.var())
        order = steps / total if total > 0 else 2.0
        if within <= 0:
            same = (1.0, np.inf, 0.0) if between > 0 else (0.0, 0.0, 1.0)
            return cls(*same, order, levels)
        size = (rows - float((counts**2).sum()) / rows) / (levels - 1)
        intraclass = (between - within) / (between + (size - 1) * within)
        ratio = between / within
        return cls(intraclass, ratio, float(fdtrc(left, rows - levels, ratio)), order, levels)


def autocorrelation(values: Floats) -> float:
    """Return the lag-1 autocorrelation of columns together."""
    values = values[np.isfinite(values).all(axis=1)]
    if len(values) < ORDERED_ROWS:
        return 0.0
    values = values - values.mean(axis=0)
    total = float((values**2).sum())
    return float((values[:-1] * values[1:]).sum()) / total if total > 0 else 0.0


def is_slow(values: Floats) -> bool:
    """Tell whether values change from row to row, but little; settings of a design do not."""
    changes = np.mean(values[1:] != values[:-1])
    return bool(changes > CHANGING) and autocorrelation(values[:, None]) > ALIKE


def is_regular(times: Floats) -> bool:
    """Tell whether each row has a later time than the one before, mostly after one usual step."""
    steps = np.diff(times)
    if not (steps > 0).all():
        return False
    usual = float(np.median(steps))
    return bool(np.mean(np.abs(steps - usual) <= 0.5 * usual) >= REGULAR)


def overlaps(windows: Floats) -> tuple[int, Booleans] | None:
    """Return the hop of windows that share samples, and which follow the one before; else None."""
    count, length = windows.shape[:2]
    if count < 2 or length < 2:
        return None
    pairs = np.unique(np.linspace(0, count - 2, PAIRS).astype(np.int64))
    some, after = windows[pairs], windows[pairs + 1]
    varied = (np.ptp(some, axis=1) > 0).any(axis=1)
    same = (some[:, 1:] == after[:, :1]).all(axis=2) & varied[:, None]
    hop = 1 + int(same.sum(axis=0).argmax())
    follows = (windows[1:, 0] == windows[:-1, hop]).all(axis=1)
    follows &= (windows[1:, length - hop - 1] == windows[:-1, -1]).all(axis=1)
    if follows.mean() < NEAR_SHARE or not varied.mean() > NEAR_SHARE:
        return None
    return hop, np.concatenate([[False], follows])


def stretches(follows: Booleans, reach: int) -> tuple[Integers, Booleans]:
    """Number recordings of windows, each of which shares samples with `reach` after it.

    Few recordings are divided into stretches, between which some windows are not kept.
    """
    recording = np.cumsum(~follows) - 1
    every = np.ones(len(follows), dtype=bool)
    if recording[-1] + 1 >= FEWEST_RECORDINGS:
        return recording, every
    part = np.arange(len(follows)) * STRETCHES // len(follows)
    group = np.unique(recording * STRETCHES + part, return_inverse=True)[1].reshape(-1)
    for step in range(1, reach + 1):
        later = np.roll(group, -step)
        inside = np.roll(recording, -step) == recording
        inside[-step:] = False
        every &= ~inside | (later == group)
    return group, every


def to_one_scale(values: Floats) -> Floats:
    """Bring columns to one scale, which outliers do not set; many of them to fewer directions."""
    shift, scale = scale_of(values)
    return projected(np.where(np.isnan(values), 0.0, (values - shift) / scale))


def scale_of(values: Floats) -> tuple[Floats, Floats]:
    low, middle, high = np.nanquantile(values, (0.25, 0.5, 0.75), axis=0)
    spread = (high - low) / 1.35
    std = np.nanstd(values, axis=0)
    scale = np.where(spread > 0, np.minimum(spread, std), std)
    return middle, np.where(scale > 0, scale, 1.0)


def projected(values: Floats) -> Floats:
    if values.shape[1] <= DIMENSIONS:
        return values
    directions = np.random.default_rng(0).normal(size=(values.shape[1], DIMENSIONS))
    return cast(Floats, values @ (directions / np.sqrt(DIMENSIONS)))


def near_copies(
    values: Floats, levels: Floats | None, rng: np.random.Generator
) -> tuple[float, float] | None:
    """Return the share of rows with near-copies, and the distance that divides those from others.

    Of independent rows in d dimensions, the distances r_1 < r_2 < ... to the nearest rows obey
    P(r_(j+1) / r_j > g) = g^(-d j). A row has near-copies where that ratio is above g_j =
    max(8, 20^(1 / sqrt j)) for some j: 7 % of independent rows at most, where d is 1.
    """
    rows = len(values)
    queries = rng.permutation(rows)[:QUERIES]
    own = values[queries]
    squares = (values**2).sum(axis=1)
    distance = (own**2).sum(axis=1)[:, None] + squares - 2 * own @ values.T
    distance[np.arange(len(queries)), queries] = np.inf
    # Equal rows are no near-copies: a split keeps them together anyway.
    most = min(NEIGHBORS, rows - 1)
    nearest = np.argpartition(distance, most - 1, axis=1)[:, :most]
    exact = np.sqrt(((own[:, None, :] - values[nearest]) ** 2).sum(axis=2))
    order = np.argsort(exact, axis=1)
    nearest = np.take_along_axis(nearest, order, axis=1)
    exact = np.take_along_axis(exact, order, axis=1)
    tiny = 1e-12 * np.sqrt(squares.mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(exact[:, :-1] > tiny, exact[:, 1:] / exact[:, :-1], 0.0)
    place = np.arange(1, most)
    beyond = ratios / np.maximum(LEAST_GAP, GAP ** (1 / np.sqrt(place)))
    best = beyond.argmax(axis=1)
    every = np.arange(len(queries))
    near = beyond[every, best] > 1
    if near.mean() < NEAR_SHARE:
        return None
    if levels is not None:
        first = nearest[:, 0]
        if _equal_rows(levels[queries[near]], levels[first[near]]) < SAME:
            return None
    inner, outer = exact[every, best][near], exact[every, best + 1][near]
    cut = float(np.sqrt(np.median(inner) * np.median(outer)))
    return float(near.mean()), cut


def _equal_rows(one: Floats, other: Floats) -> float:
    equal: Booleans = (one == other) | (np.isnan(one) & np.isnan(other))
    return float(equal.all(axis=1).mean())


def near_blocks(values: Floats, cut: float) -> Integers:
    """Number the blocks of rows that are nearer than `cut`, each to one of the others."""
    from scipy.sparse import coo_array  # late: they take long to import
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    # Equal rows once: they would be each other's only neighbors.
    _, first, number = np.unique(row_hashes(values), return_index=True, return_inverse=True)
    points = values[first]
    wanted = min(17, len(points))
    distance, other = cKDTree(points).query(points, k=wanted, distance_upper_bound=cut)
    from_row, place = np.nonzero(np.isfinite(distance))
    pairs = (np.ones(len(from_row)), (from_row, other[from_row, place]))
    _, block = connected_components(coo_array(pairs, shape=(len(points), len(points))), False)
    return cast(Integers, block[number.reshape(-1)].astype(np.int64))


# --------------------------------------------------------------------------------------------------
# The table and target that the check works on, as numbers and codes
# --------------------------------------------------------------------------------------------------

Task = Literal["auto", "regression", "classification"]

MOST_ROWS = 5_000  # that are drawn for tests of independent rows
MOST_COLUMNS = 500  # that are tested one by one
CLASS_VALUES = 20  # whole numbers with so few values may be classes
ISO = re.compile(r"\d{4}-\d{2}")
CALENDAR = {
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    *("mon", "tue", "wed", "thu", "fri", "sat", "sun", ""),
}


@dataclass(frozen=True)
class Target:
    """The target: numbers (rows, outputs) or the number of each row's class."""

    values: NDArray[Any]
    labels: tuple[Any, ...] | None

    @property
    def rows(self) -> int:
        return len(self.values)

    @property
    def outputs(self) -> int:
        return 1 if self.values.ndim == 1 else self.values.shape[1]

    @property
    def is_classes(self) -> bool:
        return self.labels is not None

    @property
    def task(self) -> str | None:
        if not self.outputs:
            return None
        return "classification" if self.is_classes else "regression"

    @classmethod
    def of(cls, y: ArrayLike, task: Task) -> Target:
        try:
            array = as_numpy("y", y, LABELS if task != "regression" else NUMBERS)
        except InputError:
            if task != "auto":
                raise
            array = as_numpy("y", y, NUMBERS)  # beyond those that number classes
        classes = task == "classification"
        if task == "auto":
            classes = array.dtype.kind in "OUb" or (
                array.dtype.kind in "iu" and len(np.unique(array)) <= CLASS_VALUES
            )
        if classes:
            column = array.reshape(-1) if array.ndim == 2 and array.shape[1] == 1 else array
            if column.ndim != 1:
                raise InputError(f"y has shape {array.shape}; labels are accepted as (rows,)")
            if column.dtype.kind == "O":
                column = column.astype(str)
            names, numbers = np.unique(column, return_inverse=True)
            return cls(numbers.reshape(-1), tuple(names.tolist()))
        numbers = array.astype(np.float64)
        return cls(numbers.reshape(len(numbers), -1), None)

    def responses(self, rows: Integers) -> Floats:
        """Return what a regression predicts: standardized targets, or 1 for the row's class."""
        own = self.values[rows]
        if self.labels is None:
            std = own.std(axis=0)
            return cast(Floats, (own - own.mean(axis=0)) / np.where(std > 0, std, 1.0))
        classes = np.argsort(-np.bincount(own))[:4]
        return cast(Floats, (own[:, None] == classes).astype(np.float64))


@dataclass(frozen=True)
class Column:
    """One input: its values as numbers; codes of text and other categories."""

    name: str
    values: NDArray[Any]
    kind: Literal["number", "category", "time"]
    clock: Floats | None = None  # of text that is dates, in seconds
    calendar: bool = False  # of names of months or days of the week

    @property
    def is_dated(self) -> bool:
        """Whether the values are dates or times."""
        return self.kind == "time" or self.clock is not None

    @property
    def seconds(self) -> Floats:
        """The values as times: of dates in seconds, of numbers in their own unit."""
        values = self.values if self.clock is None else self.clock
        return values.astype(np.float64)

    @cached_property
    def whole(self) -> bool:
        """Whether the values are whole numbers, or categories."""
        if self.kind != "number":
            return self.kind == "category"
        if self.values.dtype.kind in "iub":
            return True
        some = self.values[:MOST_ROWS]
        return bool(np.all((some == np.rint(some)) & (np.abs(some) < 2.0**53)))

    def level_numbers(self) -> tuple[NDArray[Any], Integers]:
        """Return the levels in their order, and the number of each row's."""
        levels, number = np.unique(self.values, return_inverse=True)
        return levels, number.reshape(-1)


@dataclass(frozen=True)
class Table:
    """The inputs by column."""

    columns: list[Column]
    rows: int
    named: bool
    inputs: int
    windows: NDArray[Any] | None = None  # (rows, time, channels), where rows are these

    @classmethod
    def of(cls, X: Any, categorical: Categorical) -> Table:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) == 3:
            windows = X if isinstance(X, np.ndarray) and X.dtype.kind in "iuf" else None
            return cls([], len(X), False, int(shape[-1]), windows)
        columns = Columns.of(X, every=True)
        if columns is None:  # of what numpy alone knows to read
            X = np.asarray(X)
            columns = Columns.of(X, every=True)
        if columns is None:
            raise InputError(f"X has no columns; accepted: (rows, features); got {type(X)}")
        plain_numbers = isinstance(X, np.ndarray) and X.dtype.kind not in "OU"
        automatic = isinstance(categorical, str) or categorical is None
        chosen = set() if automatic and plain_numbers else set(_categories(columns, categorical))
        named = any(isinstance(name, str) for name in columns.names)
        found = [
            one
            for k, name in enumerate(columns.names[:MOST_COLUMNS])
            if (one := _column(columns, k, str(name), k in chosen)) is not None
        ]
        rows = len(columns.values[0]) if columns.values else 0
        return cls(found, rows, named, len(columns.values))


def _categories(columns: Columns, categorical: Categorical) -> list[int]:
    try:
        return columns.chosen(categorical)
    except InputError:  # of a column that is neither; `fit` says so
        return []


def _column(columns: Columns, k: int, name: str, category: bool) -> Column | None:
    values = columns.values[k]
    if holds_dates(values):
        try:
            return Column(name, moments_of(values).since, "time")
        except InputError:
            return None
    if not category:
        if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
            return Column(name, values, "number")
        try:
            numbers = columns.numbers(k)
        except InputError:
            category = True
        else:
            return Column(name, numbers, "number")
    try:
        texts = np.array(["" if is_missing(v) else str(v) for v in columns.objects(k)])
    except (TypeError, ValueError):
        return None
    levels, codes = np.unique(texts, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    clock = _dates(levels)
    if clock is not None:
        clock = clock[codes]
    if len(levels) * ROWS_A_LEVEL <= len(texts):  # else they name rows, and have no order
        order = sorted(range(len(levels)), key=lambda place: _natural(str(levels[place])))
        rank = np.empty(len(levels), dtype=np.int64)
        rank[order] = np.arange(len(levels))
        codes = rank[codes]
    calendar = {str(level)[:3].lower() for level in levels} <= CALENDAR
    return Column(name, codes, "category", clock, calendar)


def _dates(levels: NDArray[Any]) -> Floats | None:
    """Return ISO dates as seconds; None of other text."""
    known = levels[levels != ""]
    if not len(known) or not ISO.match(str(known[0])):
        return None
    try:
        found = np.array([text or "NaT" for text in levels.tolist()], dtype="datetime64[us]")
    except ValueError:
        return None
    return np.where(np.isnat(found), np.nan, found.astype(np.int64) / 1e6)


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Return a key by which R2 comes before R10."""
    parts = re.findall(r"\d{1,18}|\D+|\d+", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def counts_rows(values: NDArray[Any]) -> bool:
    """Tell whether whole numbers number the rows: in order, or all of a range, each once."""
    if not np.isfinite(values[[0, -1]].astype(np.float64)).all():
        return False
    for some in (values[:1_000], values):
        up, down = (some[1:] > some[:-1]).all(), (some[1:] < some[:-1]).all()
        if not (up or down):
            break
    else:
        return True
    low, high = values.min(), values.max()
    if float(high) - float(low) != len(values) - 1:
        return False
    return len(np.unique(values)) == len(values)


def matrix(columns: Sequence[Column], rows: Integers) -> Floats:
    """Return some rows of columns as numbers, missing values as NaN."""
    found = np.empty((len(rows), len(columns)))
    for k, one in enumerate(columns):
        found[:, k] = one.values[rows]
    found[~np.isfinite(found)] = np.nan
    return found


def same_levels(one: Column, number: Integers) -> bool:
    """Tell whether a column divides the rows as these levels do: another name of the same."""
    if not one.whole:
        return False
    other = one.level_numbers()[1]
    levels = int(number.max()) + 1
    if int(other.max()) + 1 != levels:
        return False
    return len(np.unique(other * levels + number)) == levels


def never_falls(values: NDArray[Any]) -> bool:
    """Tell whether a column only grows, like a year, or a month within one year."""
    return bool((values[1:] >= values[:-1]).all()) and len(np.unique(values)) > 2
