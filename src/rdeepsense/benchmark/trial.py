"""One trial: one family fitted on training rows, each of its methods judged on test rows."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import metrics
from rdeepsense.methods import Method, build

Trial = dict[str, Any]
"""{"fit_seconds": 1.2, "chosen": {...}, "warnings": [...], "methods": {name: figures}}"""

# What an estimator warns of when Ctrl-C stops one of its trainings, before it goes on with what it
# has. A half-trained model is no result, so here this is an error, and the interrupt is a real one.
INTERRUPTED = "training was interrupted"


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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("error", INTERRUPTED)
        begin = time.perf_counter()
        try:
            model.fit(*train, groups=groups)
        except UserWarning as stopped:
            raise KeyboardInterrupt from stopped
        seconds = time.perf_counter() - begin
        figures = {method.name: _judge(model, method, *test) for method in methods}
    chosen: Any = getattr(model, "candidate_", None)  # a GP chooses among no candidates
    return {
        "fit_seconds": seconds,
        "chosen": None if chosen is None else dataclasses.asdict(chosen),
        "warnings": sorted({" ".join(str(warning.message).split()) for warning in caught}),
        "methods": figures,
    }


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
