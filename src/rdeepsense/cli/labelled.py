"""The truth in a table, as a model that was fitted before has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdeepsense.cli.columns import labels, numeric_targets
from rdeepsense.cli.reading.table import Table
from rdeepsense.cli.reading.targets import read_targets, with_truth
from rdeepsense.cli.scores import known_labels
from rdeepsense.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rdeepsense.estimators.loading import Estimator


def target_columns(model: Estimator, given: list[str] | None) -> list[str]:
    """Return the columns with the truth, in the model's order where it knows their names."""
    names = list(model.fitted_.target.names or ())
    if not names:
        if not given:
            raise InputError("--target: the model file has no names of targets; give them")
        return given
    if given and sorted(given) != sorted(names):
        raise InputError(
            f"--target {', '.join(map(repr, given))}: the model predicts "
            f"{', '.join(map(repr, names))}; leave --target out, or rename the column of the truth"
        )
    return names


def labelled_rows(model: Estimator, table: Table, targets: list[str]) -> Table:
    """Leave out the rows whose truth is not known."""
    return with_truth(table, targets, _has_texts(model))


def _has_texts(model: Estimator) -> bool:
    return hasattr(model, "classes_") and model.classes_.dtype.kind == "U"


def truth_of(model: Estimator, table: Table, targets: list[str]) -> NDArray[np.generic]:
    """Return values or labels; labels of a model whose classes are texts stay texts."""
    if not _has_texts(model):
        frame = read_targets(table, targets)[0]
        if not hasattr(model, "classes_"):
            return numeric_targets(frame, targets)
        return known_labels(model, labels(frame, targets[0]), targets[0])
    return known_labels(model, labels(table.frame, targets[0]), targets[0])
