"""The test rows: set aside before anything is chosen, so that their figures are honest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

FEWEST_TRAINING_ROWS = 10  # the estimators' own limit
FEW_INPUTS = 100  # fewer distinct inputs: a table of counts, whose rows are split one by one


def split_off(
    inputs: pl.DataFrame,
    fraction: float,
    seed: int,
    groups: NDArray[Any] | None = None,
    classes: NDArray[Any] | None = None,
) -> NDArray[np.bool_]:
    """Which rows are for the test: about `fraction` of the groups, or of the rows.

    Rows of one group, or with equal inputs, stay together. Without groups every class keeps its
    share as nearly as whole rows allow.
    """
    import numpy as np

    if not 0 <= fraction < 1:
        raise InputError(f"--test-fraction {fraction}: must be at least 0 and below 1")
    test = np.zeros(inputs.height, dtype=bool)
    if fraction == 0:
        return test
    cell = _cells(inputs, groups)
    cells = int(cell.max()) + 1
    if groups is not None and cells < 2:
        raise InputError("--groups has only one value; at least two are needed, one for the test")
    first = np.unique(cell, return_index=True)[1]
    stratum = np.zeros(cells, dtype=np.int64)
    if classes is not None and groups is None:
        stratum = np.unique(classes[first], return_inverse=True)[1]
    test = _draw(stratum, fraction, np.random.default_rng(seed))[cell]
    left = int((~test).sum())
    if left < FEWEST_TRAINING_ROWS:
        raise InputError(
            f"the table has {len(test)} rows; without {int(test.sum())} for the test {left} are "
            f"left, and at least {FEWEST_TRAINING_ROWS} are needed to fit"
        )
    if classes is not None:
        _check_classes(classes, test)
    return test


def _cells(inputs: pl.DataFrame, groups: NDArray[Any] | None) -> NDArray[np.int64]:
    """For each row the number of the cell (group, or equal inputs) that must not be divided."""
    import numpy as np

    keys = inputs.hash_rows(seed=0).to_numpy() if groups is None else groups
    _, first, cell = np.unique(keys, return_index=True, return_inverse=True)
    if groups is None and len(first) < FEW_INPUTS:
        return np.arange(inputs.height)
    # Numbered as they come in the table: hashes may differ from one version of polars to the next.
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[cell]


def _draw(
    stratum: NDArray[np.int64], fraction: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """A random `fraction` of each stratum; one cell at least, and never all of several."""
    import numpy as np

    chosen = np.zeros(len(stratum), dtype=bool)
    for value in np.unique(stratum):
        cells = np.flatnonzero(stratum == value)
        count = min(round(fraction * len(cells)), len(cells) - 1)
        chosen[rng.permutation(cells)[:count]] = True
    if not chosen.any():
        chosen[rng.choice(np.flatnonzero(stratum == np.bincount(stratum).argmax()))] = True
    return chosen


def _check_classes(classes: NDArray[Any], test: NDArray[np.bool_]) -> None:
    import numpy as np

    unseen = np.setdiff1d(classes[test], classes[~test])
    if len(unseen):
        raise InputError(
            f"class {unseen[0].item()!r} has rows in the test groups only, so it cannot be learnt; "
            "try another --seed or --test-fraction"
        )
