"""An object of the user's own among the methods: fitted as it is, asked for what it can say.

In this order: `predict_dist(X)`, `pred_dist(X)`, `predict(X, return_std=True)`, then intervals,
`predict_interval(X, coverage)` or `predict(X, quantiles=[...])`; for classes `predict_proba(X)`
after the first two. Nothing is split off or calibrated for it: that is the object's affair.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import DistributionEstimator
from rdeepsense.experiments.peers import stated
from rdeepsense.experiments.peers.intervals import Intervals

Prediction = AnyDistribution | Intervals
WAYS = {
    "regression": ("predict_dist(X)", "pred_dist(X)", "predict(X, return_std=True)",
                   "predict_interval(X, coverage)", "predict(X, quantiles=[...])"),
    "classification": ("predict_dist(X)", "pred_dist(X)", "predict_proba(X)"),
}  # fmt: skip


@dataclass(eq=False, repr=False)
class OwnModel(BaseEstimator):
    """A copy of an object with `fit(X, y)`, and its predictions as this package has them."""

    model: Any
    task: str
    name: str
    labels_: NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse what could not be scored, before anything is fitted."""
        what = f"method {self.name!r}"
        if isinstance(self.model, type):
            raise InputError(f"{what} is a class; give an object, {self.model.__name__}(...)")
        if not callable(getattr(self.model, "fit", None)):
            raise InputError(f"{what}, a {type(self.model).__name__}, has no fit(X, y)")
        self._way()

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit a fresh copy; groups are given to a `fit` that has an argument of this name."""
        self.fitted_ = _copied(self.model)
        grouped = groups is not None and _takes(self.fitted_.fit, "groups")
        self.fitted_.fit(X, y, **({"groups": groups} if grouped else {}))
        if self.task == "classification":
            self.labels_ = np.asarray(getattr(self.fitted_, "classes_", np.unique(np.asarray(y))))
        return self

    def predict_dist(self, X: ArrayLike, samples: int | None = None) -> Prediction:
        """Return what the object says of each row, in the best form it has."""
        way, model, rows = self._way(), self.fitted_, len(np.asarray(X))
        whose = f"{way} of method {self.name!r}"
        found: Any
        if way in ("predict_dist(X)", "pred_dist(X)", "predict_proba(X)"):
            found = getattr(model, way.removesuffix("(X)"))(X)
        elif way == "predict(X, return_std=True)":
            found = model.predict(X, return_std=True)
        else:
            return self._intervals(way, X, rows)
        if self.task == "classification":
            return stated.classes(found, rows, self.labels_, whose)
        return stated.numbers(found, rows, whose)

    def _intervals(self, way: str, X: ArrayLike, rows: int) -> Intervals:
        model = self.fitted_

        def interval(coverage: float) -> Any:
            if way == "predict_interval(X, coverage)":
                return model.predict_interval(X, coverage)
            tail = (1 - coverage) / 2
            return np.asarray(model.predict(X, quantiles=[tail, 1 - tail]))

        point = None
        if _method(model, "predict") is not None:
            median = {} if way.startswith("predict_interval") else {"quantiles": [0.5]}
            point = np.asarray(model.predict(X, **median), np.float64).reshape(rows)
        return Intervals.ask(interval, point, rows)

    def _way(self) -> str:
        """Return the first way of predicting that the object has."""
        ways: Sequence[str] = WAYS[self.task]
        predict = _method(_last_step(self.model), "predict")
        for way in ways:
            name, _, arguments = way.partition("(")
            if name != "predict" and callable(_method(self.model, name)):
                return way
            option = arguments.partition(", ")[2].partition("=")[0]
            if name == "predict" and predict is not None and _takes(predict, option):
                return way
        raise InputError(
            f"method {self.name!r}, a {type(self.model).__name__}, says nothing about its "
            f"uncertainty; for {self.task} one of these is needed: {', '.join(ways)}"
        )


def _copied(model: Any) -> Any:
    """Return a fresh object: scikit-learn's clone where it can, else a deep copy."""
    try:
        fresh = clone(model)
    except (TypeError, RuntimeError):  # no get_params, or a constructor that changes what it stores
        fresh = copy.deepcopy(model)
    if isinstance(fresh, DistributionEstimator):
        fresh.set_params(verbose=False)  # the comparison has a display of its own
    return fresh


def _method(model: Any, name: str) -> Callable[..., Any] | None:
    found = getattr(model, name, None)
    return found if callable(found) else None


def _last_step(model: Any) -> Any:
    """Return what a pipeline ends in, to which its `predict` passes arguments on."""
    steps = getattr(model, "steps", None)
    return steps[-1][1] if steps else model


def _takes(method: Callable[..., Any], option: str) -> bool:
    """Tell whether a method has an argument of this name."""
    try:
        return option in inspect.signature(method).parameters
    except (TypeError, ValueError):  # of a method that is not written in Python
        return False
