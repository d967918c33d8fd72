"""The tensors of a model file that belong to adaptation, and the order among their numbers.

adaptation.between, .within       (directions,), of numbers alone
adaptation.directions, .shares    (outputs, directions), of numbers alone
adapted.weights                   (features, directions), of classes (features, classes)
adapted.covariance, .start        (directions, features, features), of classes one matrix alone
adapted.projection                (hidden, features - 1), where the last layer is wide
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rdeepsense.adaptation.choose import MOST_FEATURES
from rdeepsense.adaptation.corrections import MOST_DIRECTIONS
from rdeepsense.errors import InputError
from rdeepsense.fitting.tensor_shapes import Numbers, Shapes, length
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.tensors import Tensors

LARGE = 1e30


def adapted_layout(
    header: Header, shapes: Shapes, outputs: int, classes: bool
) -> Iterator[tuple[str, Numbers]]:
    """Name the tensors of a prior and of what was learnt, where the header has them."""
    columns = outputs
    if not classes:
        columns = length(shapes, "adaptation.between")
        if columns > MOST_DIRECTIONS:
            raise InputError(f"adaptation.between has {columns} of {MOST_DIRECTIONS} directions")
        yield "adaptation.between", Numbers((columns,), 0.0, LARGE)
        yield "adaptation.within", Numbers((columns,), 1 / LARGE, LARGE)
        yield "adaptation.directions", Numbers((outputs, columns), -1 - 1e-6, 1 + 1e-6)
        yield "adaptation.shares", Numbers((outputs, columns), 0.0, 1.0)
    if "adapted" not in header:
        return
    size = length(shapes, "adapted.weights")
    if size > MOST_FEATURES + 1:
        raise InputError(f"adapted.weights has {size} rows; accepted: {MOST_FEATURES + 1} at most")
    matrices = (size, size) if classes else (columns, size, size)
    yield "adapted.weights", Numbers((size, columns), -LARGE, LARGE)
    yield "adapted.covariance", Numbers(matrices, -LARGE, LARGE)
    if not classes:
        yield "adapted.start", Numbers(matrices, -LARGE, LARGE)
    if "adapted.projection" in shapes:
        hidden = length(shapes, "adapted.projection")
        yield "adapted.projection", Numbers((hidden, size - 1), -1 - 1e-6, 1 + 1e-6)


def check_covariances(tensors: Tensors) -> None:
    """Refuse matrices that are no covariances."""
    for name in ("adapted.covariance", "adapted.start"):
        if name not in tensors:
            continue
        found = tensors[name].astype(np.float64)
        if not np.array_equal(found, np.swapaxes(found, -1, -2)):
            raise InputError(f"{name} is not symmetric")
        try:
            np.linalg.cholesky(found)
        except np.linalg.LinAlgError as error:
            raise InputError(f"{name} is not positive definite") from error


def check_adapted_size(tensors: Tensors, hidden: int) -> None:
    """Refuse a correction of another last layer than the network's."""
    if "adapted.weights" not in tensors:
        return
    size = len(tensors["adapted.weights"])
    reads = len(tensors.get("adapted.projection", np.empty(size - 1)))
    if reads != hidden:
        raise InputError(f"adapted.weights are for {reads} numbers, the last layer has {hidden}")
