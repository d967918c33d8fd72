"""A stream that has been: what a model would have said of each row, as it was and learning on.

Each row is predicted before its own label comes. Four ways stand beside each other:

    frozen    the model as it is
    tracked   its intervals stretched by a quantile that is tracked, the rest as it is
    adapted   the last layer learns on, intervals as the distribution has them
    live      both, as `model.live()` says it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rdeepsense.adaptation.rates import Rates
from rdeepsense.adaptation.trackers import Multiplicative
from rdeepsense.arrays import Booleans, Floats
from rdeepsense.errors import InputError
from rdeepsense.estimators.rdeepsense import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.live.judged import JudgedClasses, JudgedNumbers
from rdeepsense.live.live import Live

WAYS = ("frozen", "tracked", "adapted", "live")
FIGURES = ("error", "coverage", "width", "nll")


@dataclass(frozen=True)
class Told:
    """What one way said of each row, (rows,) each; NaN where the truth is not known.

    Of several outputs all are means over the outputs.
    """

    error: Floats  # |median - y|; for classes 1 where the most probable one is wrong
    held: Floats  # 1 where the interval, or the set, holds the truth
    width: Floats  # of the interval; for classes the size of the set
    nll: Floats

    def figures(self) -> dict[str, float]:
        """Return the means over the rows whose truth is known."""
        known = ~np.isnan(self.error)
        values = (self.error, self.held, self.width, self.nll)
        return {
            name: float(value[known].mean()) for name, value in zip(FIGURES, values, strict=True)
        }


@dataclass(frozen=True)
class Replayed:
    """A stream, row by row, as each way would have met it."""

    ways: Mapping[str, Told]  # by the names in WAYS
    coverage: float  # what intervals promise
    labelled: Booleans  # (rows,), whether the truth is known
    observed: Booleans  # (rows,), whether the live model was told
    alarm: int | None  # rows that had come when the alarm rang
    is_classes: bool
    times: NDArray[Any] | None = None  # of each row
    timed_by: str = ""  # what the times are called


def replay(
    model: RDeepSenseRegressor | RDeepSenseClassifier,
    X: Any,
    y: ArrayLike,
    every: int = 1,
    *,
    live: Live | None = None,
    seen: Callable[[int], None] = lambda rows: None,
) -> Replayed:
    """Replay rows in their order, telling a live model every Nth label.

    Rows without a label, NaN or None, are predicted, neither learnt from nor judged. The tracker on
    the frozen model takes the step that `Rates` has by default.

    Parameters
    ----------
    model : a fitted model that can be live.
    X, y : rows as the model takes them, and their labels.
    every : of the rows with a label the first, and every Nth after it, are observed.
    live : how the model is live, by default `model.live()`; it has learnt the stream afterwards.
    seen : is called with the number of rows after each.
    """
    if not isinstance(every, int | np.integer) or every < 1:
        raise InputError(f"every = {every!r}; accepted: whole numbers from 1")
    live = model.live() if live is None else live
    fitted, coverage = model.fitted_, live.settings.coverage
    truths = np.asarray(y)
    labelled = _labelled(truths)
    dist = model.predict_dist(X)
    if len(truths) != len(dist) or not labelled.any():
        raise InputError(f"{len(dist):,} rows and {len(truths):,} labels, {labelled.sum():,} known")
    kind = JudgedClasses if fitted.target.is_classes else JudgedNumbers
    judge = kind.of(fitted.target, truths, labelled, coverage)
    observed = np.zeros(len(truths), np.bool_)
    observed[np.flatnonzero(labelled)[::every]] = True
    rows = X if fitted.inputs.encoding is not None else np.asarray(X, np.float64)
    track = [Multiplicative(1 - coverage, Rates().eta)] * judge.tracked
    found = np.empty((len(truths), len(WAYS), len(FIGURES)))
    alarm = None
    for k in range(len(truths)):
        said = live.predict(rows[k : k + 1])
        before, after = dist[k], said.distribution
        q = np.array([tracker.q for tracker in track])
        reach = judge.reach(before, q)
        found[k] = (
            judge(k, before, judge.reach(before)),
            judge(k, before, reach),
            judge(k, after, judge.reach(after)),
            judge(k, after, said.interval),
        )
        if observed[k]:
            live.observe(truths[k], said.ticket)
            missed = judge.missed(k, reach)
            track = [one.after(bool(m)) for one, m in zip(track, missed, strict=True)]
        if alarm is None and live.drifting:
            alarm = k + 1
        seen(k + 1)
    ways = {way: Told(*found[:, number].T) for number, way in enumerate(WAYS)}
    return Replayed(ways, coverage, labelled, observed, alarm, fitted.target.is_classes)


def _labelled(truths: NDArray[Any]) -> Booleans:
    if truths.dtype.kind == "f":
        known: Booleans = ~np.isnan(truths).reshape(len(truths), -1).any(1)
        return known
    if truths.dtype.kind == "O":
        return np.array([label is not None and label == label for label in truths.tolist()])
    return np.ones(len(truths), np.bool_)
