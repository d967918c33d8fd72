"""What guard, reject option and novelty make of predictions.

The guard widens predictions of rows that it flags, the novelty those of rows that it flags alone,
the more the further out they are. The reject option leaves predictions as they are. A row that
`predict` does not take is UNSURE where there is a reject option. A row without a prediction,
because no value may be missing, is never UNLIKE.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.runner import MeanStd, Outputs
from rdeepsense.guard import Guard
from rdeepsense.status import Status, Statuses


def guarded(found: Outputs, facts: Facts, X: NDArray[Any], factor: float = 1.0) -> Outputs:
    """Add the status of rows X, and widen the predictions of those that are flagged.

    The `factor` is of the stds of rows that the guard does not flag.
    """
    if facts.guard is not None:
        found = _widened(found, facts.guard, X)
    status = np.zeros(len(X), np.uint8) if found.status is None else found.status
    if factor != 1.0 and isinstance(found, MeanStd):
        found = found._replace(std=np.where(status[:, None] > 0, found.std, factor * found.std))
    if facts.novelty is not None:
        found = _doubted(found, facts, status, X)
    if facts.refusal is not None:
        status = np.zeros(len(X), np.uint8) if found.status is None else found.status
        found = found._replace(status=status | _unsure(found, facts, X))
    return found


def _widened(found: Outputs, guard: Guard, X: NDArray[Any]) -> Outputs:
    status = guard.status(X)
    if not status.any():
        return found._replace(status=status)
    if isinstance(found, MeanStd):
        return found._replace(std=guard.widened(found.std, status), status=status)
    return found._replace(probs=guard.mixed(found.probs, status), status=status)


def _doubted(found: Outputs, facts: Facts, status: Statuses, X: NDArray[Any]) -> Outputs:
    """Flag rows that are UNLIKE, of those that the guard does not flag, and widen them."""
    assert facts.novelty is not None
    surprise = facts.novelty.surprise(facts.numbers(X))
    unlike = (surprise > facts.novelty.threshold[0]) & (status == 0)
    if facts.missing == "refuse":
        unlike &= ~np.isnan(X).any(tuple(range(1, X.ndim)))
    if facts.guard is not None and unlike.any():
        doubt = np.where(unlike, facts.novelty.doubt(surprise), 0.0)
        if isinstance(found, MeanStd):
            found = found._replace(std=facts.guard.stretched(found.std, doubt))
        else:
            found = found._replace(probs=facts.guard.blended(found.probs, doubt))
    return found._replace(status=status | unlike * np.uint8(Status.UNLIKE))


def _unsure(found: Outputs, facts: Facts, X: NDArray[Any]) -> Statuses:
    """Return UNSURE of each row that the reject option refuses."""
    assert facts.refusal is not None
    predicted = found.std if isinstance(found, MeanStd) else found.probs
    refused = facts.refusal.refused(predicted, facts.is_classifier)
    refused |= facts.unanswerable(X).any(tuple(range(1, X.ndim)))
    return np.asarray(refused * np.uint8(Status.UNSURE))
