"""The one vocabulary for what is the matter with a row, in Python, C, ONNX and tables."""

from __future__ import annotations

from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

Statuses = NDArray[np.uint8]  # values of Status, one for each row


class Status(IntFlag):
    """What is the matter with a row; flags combine, and 0 is a row as the model knows them.

    MISSING, OUT_OF_RANGE and UNKNOWN_LEVEL tell of single inputs: the row has at least the spread
    of the training targets, of classes half their frequencies. UNLIKE tells of all inputs together,
    where no single one gives the row away: at most one healthy row in a hundred is flagged, and the
    spread grows from the row's own to that of the targets as the row is further from the known
    ones. UNSURE, DRIFTING and NOT_ENOUGH_DATA change no prediction.

    OK promises no more than that none of these was found. It does not promise that the answer is
    right: the relation of inputs and target may have changed, an input that the model does not have
    may matter, and a row may be stranger than the density can tell, above all with many inputs or
    few training rows.
    """

    OK = 0
    MISSING = 1  # a NaN that it was not trained for
    OUT_OF_RANGE = 2  # an input beyond what was trained on
    UNKNOWN_LEVEL = 4  # a category that was never seen
    UNSURE = 8  # for a reject option that was fitted
    UNLIKE = 16  # inputs that are each in range, and together unlike the known rows
    DRIFTING = 32  # in streams, as is the next
    NOT_ENOUGH_DATA = 64

    @property
    def words(self) -> str:
        """The status as tables have it, such as "out of range" or "ok"."""
        flags = (flag for flag in Status if flag in self)
        return ", ".join((flag.name or "").lower().replace("_", " ") for flag in flags) or "ok"


DOUBTS = np.uint8(Status.UNSURE | Status.UNLIKE)  # that the guard has no part in


def status_words(statuses: NDArray[Any]) -> list[str]:
    """Return the words of many rows."""
    known = {int(value): Status(int(value)).words for value in np.unique(statuses)}
    return [known[int(value)] for value in statuses]
