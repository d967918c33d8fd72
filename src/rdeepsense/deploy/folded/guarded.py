"""What guard, reject option and novelty make of predictions.

The guard widens predictions of rows that it flags. The other two leave predictions as they are. A
row that `predict` does not take is UNSURE where there is a reject option. A row without a
prediction, because no value may be missing, is never UNLIKE.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.runner import MeanStd, Outputs
from rdeepsense.guard import Guard
from rdeepsense.status import Status, Statuses


def guarded(found: Outputs, facts: Facts, X: NDArray[Any]) -> Outputs:
    """Add the status of rows X, and widen the predictions of those that the guard flags."""
    if facts.guard is not None:
        found = _widened(found, facts.guard, X)
    if facts.refusal is None and facts.novelty is None:
        return found
    status = np.zeros(len(X), np.uint8) if found.status is None else found.status
    return found._replace(status=status | _further(found, facts, X))


def _widened(found: Outputs, guard: Guard, X: NDArray[Any]) -> Outputs:
    status = guard.status(X)
    if not status.any():
        return found._replace(status=status)
    if isinstance(found, MeanStd):
        return found._replace(std=guard.widened(found.std, status), status=status)
    return found._replace(probs=guard.mixed(found.probs, status), status=status)


def _further(found: Outputs, facts: Facts, X: NDArray[Any]) -> Statuses:
    """Return UNSURE and UNLIKE of each row."""
    flags, axes = np.zeros(len(X), np.uint8), tuple(range(1, X.ndim))
    if facts.refusal is not None:
        predicted = found.std if isinstance(found, MeanStd) else found.probs
        refused = facts.refusal.refused(predicted, facts.is_classifier)
        refused |= facts.unanswerable(X).any(axes)
        flags |= refused * np.uint8(Status.UNSURE)
    if facts.novelty is not None:
        unlike = facts.novelty.unlike(facts.numbers(X))
        if facts.missing == "refuse":
            unlike &= ~np.isnan(X).any(axes)
        flags |= unlike * np.uint8(Status.UNLIKE)
    return flags
