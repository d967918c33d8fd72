"""The test rows: set aside before anything is chosen, so that their figures are honest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

FEWEST_TRAINING_ROWS = 10  # the estimators' own limit
STRETCHES = 20
FREQUENT = 0.05  # of the rows


def split_off(
    inputs: pl.DataFrame,
    y: NDArray[np.generic],
    fraction: float,
    seed: int,
    groups: NDArray[np.generic] | None = None,
    classes: bool = False,
    time: NDArray[np.generic] | None = None,
) -> NDArray[np.bool_]:
    """Mark the rows for the test: about `fraction` of the groups, or of the rows; the last in time.

    Rows of one group, or with equal inputs, stay together. Every class keeps its share as nearly as
    whole rows and groups allow; `classes` tells whether y are labels.
    """
    import numpy as np

    from rdeepsense.data.splits import distinct, last_rows

    if not 0 <= fraction < 1:
        raise InputError(f"--test-fraction {fraction}: must be at least 0 and below 1")
    test = np.zeros(inputs.height, dtype=bool)
    if fraction == 0:
        return test
    if groups is not None and len(np.unique(groups)) < 2:
        raise InputError("--groups has only one value; at least two are needed, one for the test")
    if time is not None:
        test = last_rows(time, fraction)
    else:
        numbers = np.unique(y, return_inverse=True)[1] if classes else y
        labels = numbers if classes else None
        rows = distinct(inputs.to_numpy(), numbers, groups=groups, merge=False)
        test[rows.hold_out(fraction, seed, labels)[1].index] = True
    left = int((~test).sum())
    if left < FEWEST_TRAINING_ROWS:
        raise InputError(
            f"the table has {len(test)} rows; without {int(test.sum())} for the test {left} are "
            f"left, and at least {FEWEST_TRAINING_ROWS} are needed to fit"
        )
    if classes:
        _check_classes(y, test, "last part" if time is not None else "test groups")
    return test


def in_both(classes: NDArray[np.generic], test: NDArray[np.bool_]) -> bool:
    """Tell whether all classes of the test are trained on, and the test has all frequent ones."""
    import numpy as np

    names, counts = np.unique(classes, return_counts=True)
    frequent = names[counts >= FREQUENT * len(classes)]
    tested = np.unique(classes[test])
    return bool(np.isin(frequent, tested).all() and np.isin(tested, classes[~test]).all())


def stretches(time: NDArray[np.generic]) -> NDArray[np.int64]:
    """Number stretches of time of about equally many rows."""
    import numpy as np

    number = np.empty(len(time), dtype=np.int64)
    number[np.argsort(time, kind="stable")] = np.arange(len(time)) * STRETCHES // len(time)
    return number


def _check_classes(classes: NDArray[np.generic], test: NDArray[np.bool_], part: str) -> None:
    import numpy as np

    unseen = np.setdiff1d(classes[test], classes[~test])
    if len(unseen):
        raise InputError(
            f"class {unseen[0].item()!r} has rows in the {part} only, so it cannot be learnt; "
            "try another --seed or --test-fraction"
        )
