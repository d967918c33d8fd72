"""What is heard of each sensor in one recording, and what of it counts.

A sensor's samples without a value are left out of its timeline, so that a sensor that is silent
makes a gap, and one that is logged less often than others does not. Rows of one time are one
sample: each sensor's last one counts, whichever row it is in, so that sensors which come in rows of
their own are all heard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.windowing.timeline import Timeline


@dataclass(frozen=True)
class Heard:
    """The samples of a recording: all of them, one of each time, and those of each sensor."""

    every: Timeline  # a time may come twice
    line: Timeline
    sensors: tuple[Timeline, ...]
    repeated: int  # rows of which a later one of the same time has taken the place
    merged: int  # further rows that share their time with another one

    @classmethod
    def of(cls, every: Timeline, sensors: Sequence[Sequence[NDArray[Any]]]) -> Heard:
        """Find the samples of each sensor, given its columns."""
        line = every.once()
        own = [with_values(every, columns) for columns in sensors]
        if line is every:
            return cls(every, line, tuple(own), 0, 0)
        replaced = [one.taken(np.flatnonzero(~one.last)) for one in own]
        repeated = len(np.unique(np.concatenate(replaced)))
        # One and the same timeline is interpolated in once.
        kept = (line if one is every else one.once() for one in own)
        return cls(every, line, tuple(kept), repeated, len(every.t) - len(line.t) - repeated)


def with_values(line: Timeline, columns: Sequence[NDArray[Any]]) -> Timeline:
    """Return the samples with a value in each of some columns."""
    for column in columns:
        if column.dtype.kind == "f":
            line = line.where(np.isfinite(column[line.rows]))
    return line
