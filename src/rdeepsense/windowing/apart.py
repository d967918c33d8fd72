"""Which windows of a log may stand on both sides of a split: never those that share a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Booleans, Integers
from rdeepsense.windowing.gathered import Windows

FEWEST_RECORDINGS = 5
PARTS = (10, 5, 3, 2)  # stretches of time that stand for recordings; fewer where windows are long


def apart(windows: Windows) -> tuple[NDArray[Any], Booleans, str]:
    """Return the group of each window, which windows are used, and a sentence that says so.

    Groups are recordings; and of few recordings stretches of time, between which windows that
    reach over are left out.
    """
    codes = np.zeros(len(windows), np.int64)
    for values in windows.groups.values():
        distinct, own = np.unique(values, return_inverse=True)
        codes = np.unique(codes * len(distinct) + own.reshape(-1), return_inverse=True)[1]
    recordings = int(codes.max(initial=-1)) + 1
    every = np.ones(len(windows), bool)
    if recordings >= FEWEST_RECORDINGS:
        return codes, every, f"groups are the {recordings:,} recordings"
    for parts in PARTS:
        group, kept = _stretches(windows, codes, parts)
        if 2 * kept.sum() >= len(windows):
            break
    return (
        group,
        kept,
        f"{recordings} recordings are few; groups are {parts} stretches of time, and "
        f"{int((~kept).sum()):,} windows that reach from one into the next are left out",
    )


def _stretches(windows: Windows, codes: Integers, parts: int) -> tuple[Integers, Booleans]:
    # Windows lie in the order of recordings and of time.
    part = np.arange(len(windows)) * parts // max(1, len(windows))
    group = codes * parts + part
    last = windows.first + windows.recipe.length
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    nearest = np.append(windows.first[begins[1:]], np.iinfo(np.int64).max)
    number = np.searchsorted(begins, np.arange(len(windows)), side="right") - 1
    return group, last <= nearest[number]


def group_names(windows: Windows, group: Integers) -> NDArray[np.str_]:
    """Return the name of each window's group, as a user knows it: its recording, and since when."""
    heads = np.flatnonzero(np.diff(group, prepend=-1))
    stops = np.append(heads[1:], len(group))
    columns = windows.groups.items()
    recordings = [
        ", ".join(f"{name} {one[k]}" if len(columns) > 1 else str(one[k]) for name, one in columns)
        for k in heads
    ]
    if len(set(recordings)) < len(heads):  # stretches of time
        starts = windows.starts[heads]
        since = starts if starts.dtype.kind == "M" else [f"{start:g} s" for start in starts]
        recordings = [f"{own} from {at}".strip() for own, at in zip(recordings, since, strict=True)]
    return np.repeat(np.array(recordings, dtype=str), stops - heads)
