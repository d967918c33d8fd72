"""Which windows may stand on the other side of a split: never those that share a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rdeepsense.arrays import Booleans
    from rdeepsense.windowing import Windows


def apart(windows: Windows, groups: str | None) -> tuple[NDArray[Any], Booleans, str | None]:
    """Return the group of each window, which windows are used, and what is to be said.

    Groups are those asked for; else recordings, and of few recordings stretches of time.
    """
    import numpy as np

    from rdeepsense.windowing.cut import apart as windows_apart

    if groups is not None:
        return windows.groups[groups], np.ones(len(windows), bool), None
    codes, kept, said = windows_apart(windows)
    return codes, kept, f"{said} (--groups names others)" if kept.all() else said


def split_groups(
    group: NDArray[Any], fraction: float, seed: int, labels: NDArray[Any] | None
) -> Booleans:
    """Mark the windows for the test: those of about `fraction` of the groups, drawn at random."""
    import numpy as np

    from rdeepsense.data.splits import Part

    if not 0 <= fraction < 1:
        raise InputError(f"--test-fraction {fraction}: must be at least 0 and below 1")
    if fraction == 0:
        return np.zeros(len(group), bool)
    codes = np.unique(group, return_inverse=True)[1].reshape(-1)
    if codes.max() < 1:
        raise InputError("all windows are of one group; at least two are needed, one for the test")
    part = Part(np.arange(len(codes)), np.ones(len(codes)), codes, mixed=True)
    numbers = None if labels is None else np.unique(labels, return_inverse=True)[1].reshape(-1)
    test = np.zeros(len(group), bool)
    test[part.hold_out(fraction, seed, numbers)[1].index] = True
    if labels is not None:
        unseen = np.setdiff1d(labels[test], labels[~test])
        if len(unseen):
            raise InputError(
                f"class {unseen[0].item()!r} has windows in the test groups only, so it cannot be "
                "learnt; try another --seed or --test-fraction"
            )
    return test
