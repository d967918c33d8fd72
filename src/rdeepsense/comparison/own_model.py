"""Models of your own in a comparison: whatever `predict` and `predict_proba` return."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from rdeepsense.arrays import Floats
from rdeepsense.distributions import AnyDistribution, Categorical, Gaussian
from rdeepsense.distributions.base import Distribution
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import DistributionEstimator
from rdeepsense.metrics import LEVELS, curve_area, deviation_floor

# --------------------------------------------------------------------------------------------------
# Adapter for distributions with scipy's interface
# --------------------------------------------------------------------------------------------------

NODES = 64  # of the Gauss-Legendre rule on either side of the truth


class Frozen(Distribution):
    """Distributions of `rows` values behind mean(), std(), logpdf, cdf and ppf, as scipy has them.

    The methods must take an array with one value for each row.
    """

    mean: Floats
    std: Floats

    def __init__(self, source: Any, rows: int) -> None:
        mean, std = (np.asarray(getattr(source, name)(), np.float64) for name in ("mean", "std"))
        for name, value in (("mean", mean), ("std", std)):
            if value.shape not in ((), (rows,)):
                raise InputError(f"{name}() has shape {value.shape}; needed: ({rows},), one a row")
        object.__setattr__(self, "_source", source)
        self._freeze(
            mean=np.broadcast_to(mean, (rows,)).copy(), std=np.broadcast_to(std, (rows,)).copy()
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mean.shape

    def log_prob(self, y: npt.ArrayLike) -> Floats:
        """Return the logarithm of the density at y."""
        return np.asarray(self._ask("logpdf", y))

    def cdf(self, y: npt.ArrayLike) -> Floats:
        """Return P(Y <= y)."""
        return np.asarray(self._ask("cdf", y))

    def quantile(self, q: npt.ArrayLike) -> Floats:
        """Return the y with P(Y <= y) = q."""
        return np.asarray(self._ask("ppf", np.broadcast_to(np.asarray(q, np.float64), self.shape)))

    def interval(self, coverage: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return the central interval (low, high) that holds Y with probability `coverage`."""
        tail = (1 - np.asarray(coverage, np.float64)) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def crps(self, y: npt.ArrayLike) -> Floats:
        """Return 2 * integral over q of (1[y < F^-1(q)] - q) (F^-1(q) - y), numerically.

        The integrand has its kink at q = F(y), so either side has a rule of its own.
        """
        truth = np.asarray(y, np.float64)
        level = np.clip(self.cdf(truth), 1e-12, 1 - 1e-12)
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        total = np.zeros(self.shape)
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            below, above = level * node, level + (1 - level) * node
            total += weight * level * below * (truth - self.quantile(below))
            total += weight * (1 - level) * (1 - above) * (self.quantile(above) - truth)
        return 2 * total

    def _ask(self, name: str, values: npt.ArrayLike) -> Any:
        return getattr(vars(self)["_source"], name)(np.asarray(values, np.float64))


# --------------------------------------------------------------------------------------------------
# Predictions that are intervals only, and the metrics that apply
# --------------------------------------------------------------------------------------------------

COVERAGES = (50, 80, 90, 95)
UNKNOWN = ("nll", "crps", "sharpness")
"""Figures that need a density."""


@dataclass(frozen=True)
class Intervals:
    """The interval of each level for each row, and a point prediction where there is one."""

    bounds: Mapping[float, tuple[Floats, Floats]]
    point: Floats | None

    @classmethod
    def ask(cls, of: Callable[[float], Any], point: Floats | None, rows: int) -> Self:
        """Ask for the interval of every level that a figure needs; `of(coverage)` gives it."""
        levels = sorted({*LEVELS, *(percent / 100 for percent in COVERAGES)})
        return cls({level: _pair(of(level), rows, level) for level in levels}, point)

    def figures(self, y: ArrayLike) -> dict[str, float | None]:
        """Return every figure of `metrics.evaluate`, None where it needs more than intervals."""
        truth = np.asarray(y, np.float64)
        observed = np.array(self.inside(truth)) / len(truth)
        errors = None if self.point is None else self.point - truth
        area = {
            name: float(curve_area(np.array(LEVELS), observed, signed=signed))
            for name, signed in (("deviation_area", False), ("deviation_area_signed", True))
        }
        low, high = self.bounds[0.9]
        miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
        return {
            "n": len(truth),
            "mae": None if errors is None else float(np.mean(np.abs(errors))),
            "rmse": None if errors is None else float(np.sqrt(np.mean(errors**2))),
            **area,
            "deviation_floor": deviation_floor(len(truth)),
            **{f"coverage_{c}": self._held(truth, c / 100) / len(truth) for c in COVERAGES},
            "interval_score_90": float(np.mean(high - low + 20 * miss)),
            **dict.fromkeys(UNKNOWN),
        }

    def inside(self, y: ArrayLike) -> list[int]:
        """Return how many rows the interval of each of the paper's levels holds."""
        return [self._held(np.asarray(y, np.float64), level) for level in LEVELS]

    def _held(self, truth: Floats, level: float) -> int:
        low, high = self.bounds[level]
        return int(np.sum((low <= truth) & (truth <= high)))


def _pair(given: Any, rows: int, level: float) -> tuple[Floats, Floats]:
    """Take (low, high) as two arrays, or as the columns of one."""
    array = np.asarray(given, np.float64)
    if array.shape == (rows, 2) and not isinstance(given, tuple | list):
        array = array.T
    if array.shape != (2, rows):
        raise InputError(
            f"the interval of coverage {level:g} has shape {array.shape}; needed: (low, high) with "
            f"{rows} values each, or an array ({rows}, 2)"
        )
    low, high = array
    if np.any(np.isnan(array)) or np.any(low > high):
        raise InputError(f"the interval of coverage {level:g} has a low that is not below its high")
    return low, high


# --------------------------------------------------------------------------------------------------
# Conversion of a prediction to a distribution of this package
# --------------------------------------------------------------------------------------------------

ACCEPTED = (
    "a distribution of this package, a frozen one of scipy or NGBoost, .mean and .std as arrays, "
    "or a pair (mean, std)"
)
ASKED = ("mean", "std", "logpdf", "cdf", "ppf")


def numbers(found: Any, rows: int, whose: str) -> AnyDistribution:
    """Return a prediction of numbers; `whose` says what it came from, for errors."""
    if isinstance(found, Distribution):
        if found.is_categorical or found.shape != (rows,):
            raise InputError(f"{whose} gave {found!r}; needed: numbers of shape ({rows},)")
        return cast(AnyDistribution, found)
    params = _attribute(found, "params")
    # NGBoost's distributions hold a frozen one of scipy, from which they take their methods.
    inner = _attribute(found, "dist") if isinstance(params, Mapping) else found
    for source in (inner, found):
        if all(callable(_attribute(source, name)) for name in ASKED):
            # All that metrics ask of a distribution, though not all that ours can do.
            return _normal(source, rows) or cast(AnyDistribution, Frozen(source, rows))
    if isinstance(params, Mapping) and set(params) == {"loc", "scale"}:
        return _gaussian(params["loc"], params["scale"], rows, whose)
    if isinstance(found, tuple) and len(found) == 2:
        return _gaussian(found[0], found[1], rows, whose)
    mean, std = (_attribute(found, name) for name in ("mean", "std"))
    # Not an array of points: its mean and std are those over rows.
    if mean is not None and std is not None and _attribute(found, "__array__") is None:
        mean, std = (own() if callable(own) else own for own in (mean, std))
        return _gaussian(mean, std, rows, whose)
    raise InputError(f"{whose} gave a {type(found).__name__}; accepted: {ACCEPTED}")


def classes(found: Any, rows: int, labels: NDArray[Any], whose: str) -> Categorical:
    """Return a prediction of classes, labelled; `labels` are the classes in the object's order."""
    if isinstance(found, Categorical):
        found = found if found.classes is not None else found.probs
    elif callable(own := _attribute(found, "class_probs")):
        found = own()
    if isinstance(found, Categorical):
        return found
    probs = np.asarray(found)
    if probs.dtype.kind not in "fiu" or probs.shape != (rows, len(labels)):
        raise InputError(
            f"{whose} gave {type(found).__name__} of shape {probs.shape}; needed: probabilities "
            f"of shape ({rows}, {len(labels)}), a column for each class"
        )
    # float32 probabilities add up to 1 less exactly than a Categorical asks for.
    sums = probs.sum(axis=1, keepdims=True, dtype=np.float64)
    close = np.all(np.abs(sums - 1) < 1e-3)
    return Categorical(probs / sums if close else probs, labels)


def _normal(source: Any, rows: int) -> Gaussian | None:
    """Return a normal distribution exactly; None for all others."""
    family = _attribute(_attribute(source, "dist"), "name")
    if family != "norm":
        return None
    return Gaussian(*(np.broadcast_to(getattr(source, own)(), (rows,)) for own in ("mean", "std")))


def _gaussian(mean: Any, std: Any, rows: int, whose: str) -> Gaussian:
    shapes = {np.shape(mean), np.shape(std)}
    if not shapes <= {(rows,), ()}:
        raise InputError(
            f"{whose} gave mean and std of shape {np.shape(mean)} and {np.shape(std)}; needed: "
            f"({rows},)"
        )
    both = (np.broadcast_to(np.asarray(own, np.float64), (rows,)) for own in (mean, std))
    return Gaussian(*both)


def _attribute(owner: Any, name: str) -> Any:
    return getattr(owner, name, None)


# --------------------------------------------------------------------------------------------------
# A model of the user as a method
#
# In this order: `predict_dist(X)`, `pred_dist(X)`, `predict(X, return_std=True)`, then intervals,
# `predict_interval(X, coverage)` or `predict(X, quantiles=[...])`; for classes `predict_proba(X)`
# after the first two. Nothing is split off or calibrated for it: that is the object's affair.
# --------------------------------------------------------------------------------------------------

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
            return classes(found, rows, self.labels_, whose)
        return numbers(found, rows, whose)

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
