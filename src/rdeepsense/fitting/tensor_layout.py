"""The tensors of a model file: names, the shapes that fit its header, and the range of each.

    input.shift, .scale          (channels,), the last axis of what networks read of a row
    encoding.K                   (levels + 2, width), the vectors of a category
    target.shift, .scale         (outputs,), of numbers alone
    calibration.*                by its kind; the same under epistemic.laplace and epistemic.delta
    conformal.scores, .group     (rows, outputs), of classes (rows, 1); (rows,)
    guard.low, .high, .missing   (channels,), of the row itself; .levels too, with categories
    guard.fallback               (outputs,), of classes their frequencies
    novelty.*, unlike.*          columns, components and Gaussians that agree
    rows.X, .y                   (rows, *input_shape), (rows, *target.shape)
    epistemic.root               square; .ratio, .noise_share (outputs,)
    adaptation.*, adapted.*      by `adapted_layout`
    gp.*                         by its method
    network.K.*                  by the architecture, in `store_networks`

A new tensor is one line here. Shapes are compared before a number is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense import encoding
from rdeepsense.compact_novelty import BYTE, LARGEST_SINGLE, NUMBERS
from rdeepsense.encoding import without_tables
from rdeepsense.errors import InputError
from rdeepsense.fitting.adapted_layout import adapted_layout, check_covariances
from rdeepsense.fitting.description import missing_of, network_shape_of, outputs_of, shape_of
from rdeepsense.fitting.tensor_shapes import LARGEST, Numbers, Shape, Shapes, length
from rdeepsense.guard import FURTHEST
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.tensors import Tensors
from rdeepsense.training.checkpoint import LARGEST_WEIGHT
from rdeepsense.uncertainty.novelty import SCORES

TINY = 1e-300
NETWORK = "network."
DOUBLE = "f8"


def check_tensors(header: Header, tensors: Tensors) -> None:
    """Refuse tensors that are missing, unknown, of another shape or type, or out of range."""
    shapes = {name: array.shape for name, array in tensors.items()}
    wanted = dict(_wanted(header, shapes))
    for name, numbers in wanted.items():
        if name not in shapes:
            raise InputError(f"lacks the tensor {name}")
        if shapes[name] != numbers.shape:
            raise InputError(
                f"{name} has the shape {shapes[name]}, the rest of the file asks for "
                f"{numbers.shape}"
            )
        if not tensors[name].dtype.str[1:].startswith(numbers.kind):
            raise InputError(f"{name} has the type {tensors[name].dtype}")
    for name in shapes:
        if name not in wanted and not name.startswith(NETWORK):
            raise InputError(f"{name!r:.60} is no tensor of such a model")
    for name, array in tensors.items():
        check_range(name, array, wanted.get(name, WEIGHTS))
    _check_order(tensors)
    check_covariances(tensors)
    if "guard.low" in tensors:
        _check_guard(tensors, "classes" in header["target"])
    if "guard.levels" in tensors:
        counts = without_tables(header["encoding"], header["features"]).counts
        if not np.array_equal(tensors["guard.levels"], counts):
            raise InputError("guard.levels does not fit the encoding")


def check_range(name: str, array: NDArray[Any], numbers: Numbers) -> None:
    """Refuse NaN and what lies outside of a range, without a copy of the array."""
    if not array.size or array.dtype.kind == "b":
        return
    lowest, highest = (np.fmin, np.fmax) if numbers.gaps else (np.minimum, np.maximum)
    low = lowest.reduce(array, axis=None).item()
    high = highest.reduce(array, axis=None).item()
    fine = numbers.least <= low and high <= numbers.most
    if not fine and not (numbers.gaps and low != low):
        raise InputError(
            f"{name} holds {low:g} to {high:g}; accepted: {numbers.least:g} to {numbers.most:g}"
        )


WEIGHTS = Numbers((), -LARGEST_WEIGHT, LARGEST_WEIGHT)


def _wanted(header: Header, shapes: Shapes) -> Iterator[tuple[str, Numbers]]:
    """Name all tensors but those of networks."""
    shape, target = shape_of(header), header["target"]
    outputs, classes = outputs_of(target), "classes" in target
    read = network_shape_of(header, shapes)
    yield "input.shift", Numbers(read[-1:], -1e308, 1e308)
    yield "input.scale", Numbers(read[-1:], TINY, 1e308)
    yield from _encoding(header, shapes)
    if not classes:
        yield "target.shift", Numbers((outputs,))
        yield "target.scale", Numbers((outputs,), TINY)
    yield from _calibration("calibration", header["calibration"], header, shapes)
    if "conformal.scores" in shapes or "conformal.group" in shapes:
        if "conformal_groups" not in header:
            raise InputError("lacks the field conformal_groups")
        rows, groups = length(shapes, "conformal.scores"), len(header["conformal_groups"])
        yield "conformal.scores", Numbers((rows, 1 if classes else outputs), 0.0)
        yield "conformal.group", Numbers((rows,), 0, groups - 1, "i")
    if any(name.startswith("guard.") for name in shapes):
        yield "guard.low", Numbers(shape[-1:], -FURTHEST, FURTHEST)
        yield "guard.high", Numbers(shape[-1:], -FURTHEST, FURTHEST)
        yield "guard.missing", Numbers(shape[-1:], 0.0, 1.0)
        yield "guard.fallback", Numbers((outputs,), 0.0, 1.0 if classes else LARGEST)
    if any(name.startswith("novelty.") for name in shapes):
        yield from _novelty(read, shapes)
    if any(name.startswith("unlike.") for name in shapes):
        yield from _unlike(header, shape, shapes)
    if "rows.X" in shapes or "rows.y" in shapes:
        rows = length(shapes, "rows.X")
        gaps = missing_of(header) != "refuse"
        yield "rows.X", Numbers((rows, *shape), -1e308, 1e308, gaps=gaps)
        if classes:
            yield "rows.y", Numbers((rows,), 0, outputs - 1, "i")
        else:
            yield "rows.y", Numbers((rows, *target["shape"]))
    if "epistemic" in header:
        size = length(shapes, "epistemic.root")
        yield "epistemic.root", Numbers((size, size), -1e30, 1e30)
        yield "epistemic.ratio", Numbers((outputs,), TINY)
        yield "epistemic.noise_share", Numbers((outputs,), 1e-6, 1.0 + 1e-6)
        for method, kind in header["epistemic"]["calibrations"].items():
            yield from _calibration(f"epistemic.{method}", kind, header, shapes)
    if "adaptation" in header:
        yield from adapted_layout(header, shapes, outputs, classes)
    if "architecture" not in header:
        yield from _process(header["method"], read[0], outputs, shapes)


def _encoding(header: Header, shapes: Shapes) -> Iterator[tuple[str, Numbers]]:
    """Name the tables of levels, and what the guard has of them."""
    if "encoding" not in header:
        return
    found = without_tables(header["encoding"], header["features"])
    for name, shape in found.shapes(shapes).items():
        yield name, Numbers(shape, -encoding.LARGEST, encoding.LARGEST)
    if found.categories:
        yield "guard.levels", Numbers(shape_of(header), 0.0, encoding.MOST_LEVELS)


def _calibration(
    at: str, kind: str | None, header: Header, shapes: Shapes
) -> Iterator[tuple[str, Numbers]]:
    target, head = header["target"], header.get("architecture", {}).get("likelihood")
    fits = kind is None or (kind == "temperature") == ("classes" in target)
    if not fits or (kind == "noise" and head != "point"):
        raise InputError(f"{at} = {kind} does not fit the target and the head")
    if kind in ("scale", "isotonic", "temperature"):
        most = 1e6 if kind == "temperature" else 1e100
        yield f"{at}.factor", Numbers((), 1 / most, most)
    if kind == "isotonic":
        knots = (length(shapes, f"{at}.stated"),)
        yield f"{at}.stated", Numbers(knots, 0.0, 1.0)
        yield f"{at}.actual", Numbers(knots, 0.0, 1.0)
    if kind == "noise":
        yield f"{at}.variance", Numbers(tuple(target["shape"]), 0.0, 1e308)


def _novelty(shape: Shape, shapes: Shapes) -> Iterator[tuple[str, Numbers]]:
    columns = shape[0] if len(shape) == 1 else 5 * shape[-1]
    components, gaussians = length(shapes, "novelty.axes", 1), length(shapes, "novelty.shares")
    large = 1e30  # of what is stored in float32
    yield "novelty.mean", Numbers((columns,), -large, large)
    yield "novelty.std", Numbers((columns,), 1 / large, large)
    yield "novelty.knots", Numbers((len(SCORES), columns), -large, large)
    yield "novelty.centre", Numbers((columns,), -large, large)
    yield "novelty.axes", Numbers((columns, components), -large, large)
    yield "novelty.shares", Numbers((gaussians,), 0.0, 1.0 + 1e-3)
    yield "novelty.means", Numbers((gaussians, components), -large, large)
    yield "novelty.factors", Numbers((gaussians, components, components), -large, large)
    yield "novelty.held_out", Numbers((length(shapes, "novelty.held_out"),))


def _unlike(header: Header, shape: Shape, shapes: Shapes) -> Iterator[tuple[str, Numbers]]:
    """Yield the tables of a compact novelty, which reads all inputs but categories."""
    inputs = shape[-1]
    if "encoding" in header:
        inputs = len(without_tables(header["encoding"], header["features"]).numbers)
    columns = inputs * (NUMBERS if len(shape) == 2 else 1)
    knots, size = length(shapes, "unlike.knots", 1), length(shapes, "unlike.axis_steps")
    gaussians = length(shapes, "unlike.constants")
    if knots < 2:
        raise InputError("unlike.knots has a single knot")
    own: dict[str, Shape] = {
        "centre": (inputs,),
        "lines": (columns, 4),
        "knots": (columns, knots),
        "axis_steps": (size,),
        "factor_steps": (gaussians, size),
        "means": (gaussians, size),
        "constants": (gaussians,),
        "threshold": (1,),
    }
    for name, numbers in own.items():
        yield f"unlike.{name}", Numbers(numbers, -LARGEST_SINGLE, LARGEST_SINGLE)
    yield "unlike.width", Numbers((1,), 1 / LARGEST_SINGLE, LARGEST_SINGLE)
    bytes_of = {
        "scores": (columns, knots),
        "axes": (columns, size),
        "factors": (gaussians, size, size),
    }
    for name, numbers in bytes_of.items():
        yield f"unlike.{name}", Numbers(numbers, -BYTE, BYTE, "i1")


def _process(
    method: str, features: int, outputs: int, shapes: Shapes
) -> Iterator[tuple[str, Numbers]]:
    yield "gp.lengths", Numbers((features,), 1e-30, 1e30, DOUBLE)
    yield "gp.scale", Numbers((), 1e-30, 1e30, DOUBLE)
    yield "gp.noise", Numbers((), 0.0, 1e30, DOUBLE)
    if method == "exact":
        rows = length(shapes, "gp.x")
        yield "gp.x", Numbers((rows, features), -1e100, 1e100, DOUBLE)
        yield "gp.root", Numbers((rows * (rows + 1) // 2,), -1e30, 1e30, DOUBLE)
        yield "gp.alpha", Numbers((rows, outputs), -1e30, 1e30, DOUBLE)
        return
    points = length(shapes, "gp.inducing")
    roots = length(shapes, "gp.root")
    if roots not in (1, outputs):
        raise InputError(f"gp.root has {roots} matrices, not 1 or {outputs}")
    yield "gp.inducing", Numbers((points, features), -1e100, 1e100, DOUBLE)
    yield "gp.prior_root", Numbers((points, points), -1e30, 1e30, DOUBLE)
    yield "gp.mean", Numbers((points, outputs), -1e30, 1e30, DOUBLE)
    yield "gp.root", Numbers((roots, points, points), -1e30, 1e30, DOUBLE)


def _check_order(tensors: Tensors) -> None:
    """Refuse knots and scores that do not rise, and Gaussians without a width."""
    for name, array in tensors.items():
        if name.startswith(NETWORK) or not name.endswith((".stated", ".actual")):
            continue
        if len(array) < 2 or array[0] != 0 or array[-1] != 1 or not (np.diff(array) > 0).all():
            raise InputError(f"{name} does not rise from 0 to 1")
    if "unlike.knots" in tensors and not (np.diff(tensors["unlike.knots"], axis=1) >= 0).all():
        raise InputError("unlike.knots are not in order")
    if "novelty.knots" in tensors:
        for name in ("novelty.knots", "novelty.held_out"):
            if not (np.diff(tensors[name], axis=0) >= 0).all():
                raise InputError(f"{name} is not in order")
        if not (np.diagonal(tensors["novelty.factors"], axis1=1, axis2=2) > 0).all():
            raise InputError("novelty.factors has a diagonal that is not positive")
        if not tensors["novelty.shares"].max() > 0:
            raise InputError("novelty.shares are all 0")


def _check_guard(tensors: Tensors, classes: bool) -> None:
    """Refuse ranges without a number in them, and frequencies that are none."""
    if not (tensors["guard.low"] <= tensors["guard.high"]).all():
        raise InputError("guard.low lies above guard.high")
    if classes and abs(tensors["guard.fallback"].sum() - 1) > 1e-6:
        raise InputError("guard.fallback holds no frequencies of classes: their sum is not 1")
