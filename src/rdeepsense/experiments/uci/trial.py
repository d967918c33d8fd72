"""One trial: one family fitted on training rows, each of its methods scored on test rows."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rdeepsense import metrics
from rdeepsense.experiments.completing import completing
from rdeepsense.experiments.contender import Contender, contender
from rdeepsense.experiments.methods import Method
from rdeepsense.experiments.peers.intervals import Intervals
from rdeepsense.experiments.records import Record
from rdeepsense.experiments.uci.statistics import MethodScore

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
