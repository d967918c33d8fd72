"""A teacher's distributions as a table to learn from."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from rdeepsense.arrays import Floats, RandomState
from rdeepsense.data.columns import Columns
from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError

QUANTILES = 8  # equally likely values that stand for a predicted distribution
NEIGHBOURS = 3  # further inputs for each row
NEARBY = 0.1  # their distance, in standard deviations of each input


class Teacher(Protocol):
    """Whatever predicts distributions; one of classes also has `classes_`, their labels."""

    def predict_dist(self, X: ArrayLike) -> AnyDistribution:
        """Return the predictive distribution of each row."""


def distillation_set(
    teacher: Teacher, X: ArrayLike, y: ArrayLike | None, random_state: RandomState
) -> tuple[ArrayLike, NDArray[Any], Floats]:
    """Return inputs, targets and weights that stand for the teacher's predictions and y."""
    if not hasattr(teacher, "predict_dist"):
        raise InputError(f"the teacher is a {type(teacher).__name__}, which has no predict_dist")
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    rows, numbers = _taken(X)
    values = rows[:, numbers].astype(np.float64)
    near = [rows]
    for _ in range(NEIGHBOURS):
        moved = values + NEARBY * np.nanstd(values, axis=0) * rng.standard_normal(values.shape)
        near.append(rows.copy())
        near[-1][:, numbers] = moved
    places = np.concatenate(near)
    dist = teacher.predict_dist(_like(X, places))
    levels = (np.arange(QUANTILES) + rng.random((len(places), QUANTILES))) / QUANTILES
    levels = levels.T.reshape(QUANTILES, len(places), *[1] * (len(dist.shape) - 1))
    targets = np.concatenate([np.asarray(dist.quantile(level)) for level in levels])
    table = np.tile(places, (QUANTILES, *[1] * (places.ndim - 1)))
    weight = np.ones(len(table))
    classes = getattr(teacher, "classes_", None)
    if classes is not None:
        targets = classes[targets]
    if y is not None:
        y = np.asarray(y)
        if y.shape != (len(rows), *targets.shape[1:]):
            raise InputError(f"y has shape {y.shape}, the teacher predicts {dist.shape}")
        table, targets = np.concatenate([table, rows]), np.concatenate([targets, y])
        weight = np.concatenate([weight, np.full(len(rows), len(weight) / len(rows))])
    return _like(X, table), targets, weight


def _taken(X: ArrayLike) -> tuple[NDArray[Any], list[int] | slice]:
    """Return the rows, as objects where some columns are categories, and which are numbers."""
    columns = Columns.of(X)
    chosen = [] if columns is None else columns.chosen("auto")
    if columns is None or not chosen:
        return np.asarray(X, dtype=np.float64), slice(None)
    numbers = [k for k in range(len(columns.values)) if k not in chosen]
    rows = np.empty((len(columns.objects(0)), len(columns.values)), dtype=object)
    for k in range(rows.shape[1]):
        rows[:, k] = columns.numbers(k) if k in numbers else columns.objects(k)
    return rows, numbers


def _like(X: ArrayLike, values: NDArray[Any]) -> ArrayLike:
    """Return the values as a table of X's kind, so that feature names are kept."""
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        table: Any = type(X)  # of pandas or polars
        made: ArrayLike = table(values, **{_names_argument(X): list(X.columns)})
        return made
    return values


def _names_argument(X: object) -> str:
    return "columns" if type(X).__module__.startswith("pandas") else "schema"
