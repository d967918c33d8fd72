"""What a stream says of one window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rdeepsense.arrays import Floats
from rdeepsense.status import Status


@dataclass(frozen=True, eq=False)
class Decision:
    """One window of a stream, decided; what a model of the other kind says is None.

    Where windows begin anew, once, there is one without an answer: its status is
    `Status.NOT_ENOUGH_DATA`, and its start and end are the new stretch's first sample.

    Parameters
    ----------
    start, end : the window's first and last point, in seconds.
    status : what is the matter with it.
    probs : of each class, of this window alone.
    label : the class by all windows up to this one; None: none yet, or none is probable.
    probability : that `label` is right; without a label, of the most probable class.
    mean, std : of each output.
    low, high : the interval of 90 %.
    """

    start: float
    end: float
    status: Status
    probs: Floats | None = None
    label: Any = None
    probability: float | None = None
    mean: Floats | None = None
    std: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
