"""One trial: one family fitted on training rows, each of its methods judged on test rows."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense.errors import InterruptedTraining
from rdeepsense.experiments.methods import Method, build

Trial = dict[str, Any]
"""{"fit_seconds": 1.2, "chosen": {...}, "warnings": [...], "methods": {name: figures}}"""


def run_trial(
    methods: Sequence[Method],
    task: str,
    train: tuple[NDArray[Any], NDArray[Any]],
    test: tuple[NDArray[Any], NDArray[Any]],
    hidden: Sequence[int],
    random_state: int,
    groups: NDArray[Any] | None = None,
    epochs: int | None = None,
) -> Trial:
    """Fit the model that `methods` share; the test rows are seen by the last step alone."""
    model = build(methods, task, hidden, random_state, epochs)
    with watched() as warned:
        begin = time.perf_counter()
        model.fit(*train, groups=groups)
        seconds = time.perf_counter() - begin
        figures = {method.name: _judge(model, method, *test) for method in methods}
    return {
        "fit_seconds": seconds,
        "chosen": chosen_by(model),
        "warnings": warned,
        "methods": figures,
    }


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collects what is warned of, each text once; an interrupted training is an interrupt."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("error", InterruptedTraining)  # half a training is no result
        try:
            yield texts
        except InterruptedTraining as stopped:
            raise KeyboardInterrupt from stopped
    texts += sorted(
        {
            " ".join(str(warning.message).split())
            for warning in caught
            if not issubclass(warning.category, DeprecationWarning)  # of other libraries
        }
    )


def chosen_by(model: Any) -> dict[str, Any] | None:
    """Head, alpha and dropout of a fitted model; a GP chooses among no candidates."""
    candidate: Any = getattr(model, "candidate_", None)
    return None if candidate is None else dataclasses.asdict(candidate)


def _judge(
    model: Any, method: Method, X: NDArray[Any], y: NDArray[Any]
) -> dict[str, float | list[int] | None]:
    """Every figure that applies and, for regression, how many rows each level's interval held."""
    begin = time.perf_counter()
    dist = model.predict_dist(X, method.samples) if method.samples else model.predict_dist(X)
    seconds = time.perf_counter() - begin
    if hasattr(model, "classes_"):
        y = np.searchsorted(model.classes_, y)
    figures: dict[str, Any] = {
        name: value if math.isfinite(value) else None  # JSON knows no NaN
        for name, value in metrics.evaluate(dist, y).items()
    }
    if not dist.is_categorical:
        observed = metrics.calibration_curve(dist, y)[1]
        figures["inside"] = np.rint(observed * np.size(y)).astype(int).tolist()
    return {**figures, "predict_seconds": seconds}
