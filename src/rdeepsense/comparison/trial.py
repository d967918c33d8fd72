"""One trial: a method fitted on training rows and scored on test rows."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rdeepsense import metrics
from rdeepsense._records import Record
from rdeepsense.comparison.baselines import BoostedPeer, CatBoost, NGBoost
from rdeepsense.comparison.methods import FAMILIES, TASKS, Family, Method, completing
from rdeepsense.comparison.own_model import Intervals, OwnModel, Prediction
from rdeepsense.comparison.statistics import MethodScore
from rdeepsense.errors import InputError
from rdeepsense.estimators.loading import ESTIMATORS, Estimator

# --------------------------------------------------------------------------------------------------
# The estimator behind the methods of one family
# --------------------------------------------------------------------------------------------------

QUICK_LAYERS = (64, 64)


def build(
    methods: Sequence[Method],
    task: str,
    hidden: Sequence[int] | str,
    random_state: int,
    epochs: int | None = None,
) -> Estimator:
    """Return the unfitted estimator that serves all these methods of one family.

    With `hidden` "auto" families that leave their network open choose it; the others have 64-64.
    """
    if task not in TASKS:
        raise InputError(f"task = {task!r} is unknown; accepted: {', '.join(TASKS)}")
    family = FAMILIES[methods[0].family]
    options: dict[str, Any] = {"random_state": random_state, "verbose": False, **family.options}
    if family.is_network:
        options |= {"hidden": _layers(hidden, family), "epochs": epochs}
    if task == "regression":
        options |= family.regression_options
    if family.passes_option is not None:
        options[family.passes_option] = max(method.samples or 1 for method in methods)
    kind = "Regressor" if task == "regression" else "Classifier"
    return ESTIMATORS[f"{family.estimator}{kind}"](**options)


def _layers(hidden: Sequence[int] | str, family: Family) -> tuple[int, ...] | str:
    if not isinstance(hidden, str):
        return tuple(hidden)
    return hidden if family.chooses_network else QUICK_LAYERS


# --------------------------------------------------------------------------------------------------
# The interface of participants: estimators, baselines, models of the user
# --------------------------------------------------------------------------------------------------

PEERS: dict[str, type[BoostedPeer]] = {"CatBoost": CatBoost, "NGBoost": NGBoost}


class Contender(Protocol):
    """A model to fit and to score."""

    def fit(self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None) -> object:
        """Learn from these rows."""

    def predict_dist(self, X: ArrayLike, samples: int | None = None) -> Prediction:
        """Return what is predicted for each row."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that the figures follow from."""


def contender(
    methods: Sequence[Method],
    task: str,
    hidden: Sequence[int] | str,
    random_state: int,
    epochs: int | None = None,
) -> Contender:
    """Return the unfitted model that serves all these methods of one family."""
    first = methods[0]
    if first.model is not None:
        return OwnModel(first.model, task, first.name)
    if first.family in PEERS:
        return PEERS[first.family](task, random_state)
    return build(methods, task, hidden, random_state, epochs)


# --------------------------------------------------------------------------------------------------
# One trial: a family fitted on training rows and scored on test rows
# --------------------------------------------------------------------------------------------------

Rows = tuple[ArrayLike, ArrayLike]
"""Inputs and targets."""


@dataclass(frozen=True)
class FamilyTrial(Record):
    """The fit of one family and the scores of its methods on the test rows."""

    fit_seconds: float
    chosen: Mapping[str, object] | None  # head, alpha and dropout, say; None where there is none
    warnings: Sequence[str]
    methods: Mapping[str, MethodScore]


def run_trial(
    methods: Sequence[Method],
    task: str,
    train: Rows,
    test: Rows,
    hidden: Sequence[int] | str,
    random_state: int,
    groups: ArrayLike | None = None,
    epochs: int | None = None,
) -> FamilyTrial:
    """Fit the model that `methods` share; the test rows are seen by the last step alone."""
    model = contender(methods, task, hidden, random_state, epochs)
    with watched() as warned:
        begin = time.perf_counter()
        model.fit(*train, groups=groups)
        seconds = time.perf_counter() - begin
        scores = {method.name: _score(model, method, *test) for method in methods}
    return FamilyTrial(seconds, chosen_by(model), warned, scores)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collect what is warned of, each text once; an interrupted training is an interrupt."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with completing():
            yield texts
    texts += sorted(
        {
            " ".join(str(warning.message).split())
            for warning in caught
            if not issubclass(warning.category, DeprecationWarning)  # of other libraries
        }
    )


def chosen_by(model: object) -> dict[str, object] | None:
    """Return head, alpha and dropout of a fitted model; a GP chooses among no candidates."""
    candidate = getattr(model, "candidate_", None)
    return None if candidate is None else dataclasses.asdict(candidate)


def _score(model: Contender, method: Method, X: ArrayLike, y: ArrayLike) -> MethodScore:
    """Score a method: every figure that applies and, for regression, the rows inside intervals."""
    begin = time.perf_counter()
    dist = model.predict_dist(X, method.samples) if method.samples else model.predict_dist(X)
    seconds = time.perf_counter() - begin
    if isinstance(dist, Intervals):
        return MethodScore(_finite(dist.figures(y)), dist.inside(y), seconds)
    figures = _finite(metrics.evaluate(dist, y))
    inside = None
    if not dist.is_categorical:
        observed = metrics.calibration_curve(dist, y)[1]
        inside = np.rint(observed * np.size(y)).astype(int).tolist()
    return MethodScore(figures, inside, seconds)


def _finite(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the figures, None for those that JSON cannot hold."""
    return {
        name: value if value is not None and math.isfinite(value) else None
        for name, value in figures.items()
    }
