"""What the guard makes of predictions: those of rows that it flags are widened."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rdeepsense.deploy.folded.runner import MeanStd, Outputs
from rdeepsense.guard import Guard


def guarded(found: Outputs, guard: Guard | None, X: NDArray[Any]) -> Outputs:
    """Add the status of rows X, and widen the predictions of those that are flagged."""
    if guard is None:
        return found
    status = guard.status(X)
    if not status.any():
        return found._replace(status=status)
    if isinstance(found, MeanStd):
        return found._replace(std=guard.widened(found.std, status), status=status)
    return found._replace(probs=guard.mixed(found.probs, status), status=status)
