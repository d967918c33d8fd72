"""Which windows may stand on the other side of a split: never those that share a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rdeepsense.arrays import Booleans
    from rdeepsense.windowing import Windows

FEWEST_RECORDINGS = 5
PARTS = 10  # stretches of time that stand for recordings


def apart(windows: Windows, groups: str | None) -> tuple[NDArray[Any], Booleans, str | None]:
    """Return the group of each window, which windows are used, and what is to be said.

    Groups are those asked for; else recordings; and of few recordings stretches of time, between
    which windows that reach over are left out.
    """
    import numpy as np

    every = np.ones(len(windows), bool)
    if groups is not None:
        return windows.groups[groups], every, None
    names, codes = list(windows.groups), np.zeros(len(windows), np.int64)
    for name in names:
        distinct, own = np.unique(windows.groups[name], return_inverse=True)
        codes = np.unique(codes * len(distinct) + own.reshape(-1), return_inverse=True)[1]
    recordings = int(codes.max()) + 1
    if recordings >= FEWEST_RECORDINGS:
        return codes, every, f"groups are the {recordings:,} recordings (--groups names others)"
    # Windows lie in the order of recordings and of time.
    part = np.arange(len(windows)) * PARTS // len(windows)
    group = codes * PARTS + part
    last = windows.first + windows.recipe.length
    begins = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    nearest = np.append(windows.first[begins[1:]], np.iinfo(np.int64).max)
    number = np.searchsorted(begins, np.arange(len(windows)), side="right") - 1
    kept = last <= nearest[number]
    return (
        group,
        kept,
        f"{recordings} recordings are few; groups are {PARTS} stretches of time, and "
        f"{int((~kept).sum()):,} windows that reach from one into the next are left out",
    )


def split_groups(
    group: NDArray[Any], fraction: float, seed: int, labels: NDArray[Any] | None
) -> Booleans:
    """Mark the windows for the test: those of about `fraction` of the groups, drawn at random."""
    import numpy as np

    if not 0 <= fraction < 1:
        raise InputError(f"--test-fraction {fraction}: must be at least 0 and below 1")
    names = np.unique(group)
    if fraction == 0:
        return np.zeros(len(group), bool)
    if len(names) < 2:
        raise InputError("all windows are of one group; at least two are needed, one for the test")
    count = min(len(names) - 1, max(1, round(fraction * len(names))))
    chosen = np.random.default_rng(seed).permutation(names)[:count]
    test: Booleans = np.isin(group, chosen)
    if labels is not None:
        unseen = np.setdiff1d(labels[test], labels[~test])
        if len(unseen):
            raise InputError(
                f"class {unseen[0].item()!r} has windows in the test groups only, so it cannot be "
                "learnt; try another --seed or --test-fraction"
            )
    return test
