"""The header of a model file: its schema, and the shapes of the tensors that it promises."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from rdeepsense import encoding
from rdeepsense.adaptation.choose import MOST_FEATURES
from rdeepsense.adaptation.corrections import MOST_DIRECTIONS
from rdeepsense.adaptation.rates import MOST_FILTERS, MOST_KEPT
from rdeepsense.calibration import KINDS
from rdeepsense.compact_novelty import BYTE, LARGEST_SINGLE
from rdeepsense.compact_novelty import NUMBERS as NOVELTY_NUMBERS
from rdeepsense.data.checks import KEPT
from rdeepsense.encoding import check_encoding, without_tables
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import TOTALS
from rdeepsense.fitting.fitted import check_peers
from rdeepsense.fitting.gp import MODELS
from rdeepsense.guard import FURTHEST
from rdeepsense.heads import head_named
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.schema import (
    DTYPE,
    MOST_LABELS,
    Json,
    Kind,
    check_fields,
    choice,
    either,
    label,
    maybe,
    number,
    several,
    text,
    whole,
)
from rdeepsense.modelfile.tensors import Tensors, tupled
from rdeepsense.networks import Architecture, architecture_named
from rdeepsense.networks import Shape as NetworkShape
from rdeepsense.networks.base import built
from rdeepsense.training.checkpoint import LARGEST_WEIGHT
from rdeepsense.uncertainty.novelty import SCORES
from rdeepsense.windowing.recipe import Recipe
from rdeepsense.windowing.stream import Smoothing

# --------------------------------------------------------------------------------------------------
# What a tensor of a model file must be like: its shape, its type, the range of its numbers
# --------------------------------------------------------------------------------------------------

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
LARGEST = 1e200  # of what has the target's units


class Numbers(NamedTuple):
    """What a tensor must be like."""

    shape: Shape
    least: float = -LARGEST
    most: float = LARGEST
    kind: str = "f"  # numpy's letter for floats or whole numbers; with their bytes, such as f8
    gaps: bool = False  # whether NaN may stand for a missing value


def length(shapes: Shapes, name: str, axis: int = 0) -> int:
    """Return the length of an axis of a tensor that must be there."""
    shape = shapes.get(name)
    if shape is None or len(shape) <= axis or not shape[axis]:
        raise InputError(f"the tensor {name} is missing or has no numbers")
    return shape[axis]


# --------------------------------------------------------------------------------------------------
# The architecture that a model file names, held to the file's weights before it is built
#
# A header of a few bytes can ask for layers of any size and number. So the network is first built
# without memory (torch's meta device), given up as soon as it has more parameters than the file has
# tensors, and its shapes are compared with theirs.
# --------------------------------------------------------------------------------------------------

# What older files call things, by the class they belong to.
RENAMED = {"DeepSense": {"turn": "rotation_std"}}
SPARE = 1 << 20  # numbers that a network may compute for itself, as tables of cosines


def known_architecture(
    saved: Header, shape: NetworkShape, state: Mapping[str, NDArray[Any]]
) -> Architecture:
    """Return the architecture that a file names; its networks have the file's weights' shapes."""
    name, arguments = saved["class"], saved.get("arguments")
    if name == "dense":  # as files had it before architectures had classes
        name, arguments = "Dense", {"hidden": saved["hidden"]}
    known = architecture_named(name)
    if known is None or arguments is None:
        raise InputError(
            f"the file's architecture {name!r:.60} is unknown here; if it is your own, make it "
            "known with rdeepsense.networks.register before loading"
        )
    renamed = RENAMED.get(name, {})
    given = {renamed.get(k, k): tupled(v) for k, v in arguments.items()}
    try:
        architecture = known(**given)
        architecture.check(shape)
        network = _without_memory(architecture, shape, saved["outputs"], len(state))
    except (RuntimeError, TypeError, OverflowError, ValueError, MemoryError) as error:
        raise InputError(f"architecture.arguments cannot be used: {error!s:.300}") from error
    columns = head_named(saved["likelihood"]).link.columns * saved["outputs"]
    _check_shapes(network, columns, saved["outputs"], state)
    return architecture


def _without_memory(
    architecture: Architecture, shape: NetworkShape, outputs: int, tensors: int
) -> nn.Module:
    with _most_parameters(tensors):
        try:
            with torch.device("meta"):
                return architecture.build(shape, outputs, 0)
        except RuntimeError as error:
            # One of the user's own may look at its numbers while it is built.
            if "meta" not in str(error):
                raise
    with _most_parameters(tensors):
        return built(architecture, shape, outputs, 0, seed=0)


def example_shape(architecture: Architecture, shape: NetworkShape) -> NetworkShape:
    """Return the shape of a row that is enough to see which layer follows which."""
    shortest = getattr(architecture, "shortest", None)
    return shape if shortest is None else shortest(shape)


def _check_shapes(
    network: nn.Module, columns: int, outputs: int, state: Mapping[str, NDArray[Any]]
) -> None:
    """Compare what the network would be with the file's weights, but for the output layer's."""
    for name, tensor in network.state_dict().items():
        wanted, found = tuple(tensor.shape), state.get(f"body.{name}")
        if found is None:
            raise InputError(f"lacks the tensor network.0.body.{name:.60} of the architecture")
        owner = network.get_submodule(name.rpartition(".")[0])
        widened = isinstance(owner, nn.Linear) and wanted[0] == outputs
        if found.shape != wanted and not (widened and found.shape == (columns, *wanted[1:])):
            raise InputError(
                f"network.0.body.{name:.60} has the shape {found.shape}, the architecture has "
                f"{wanted}"
            )
    numbers = sum(tensor.numel() for tensor in network.buffers())
    if numbers > SPARE + sum(array.size for array in state.values()):
        raise InputError(
            f"architecture.arguments ask for tables of {numbers} numbers, which the file's weights "
            "are too few for"
        )


@contextmanager
def _most_parameters(most: int) -> Iterator[None]:
    """Give up on a network of this thread that has more parameters."""
    own, count = threading.get_ident(), 0

    def note(module: nn.Module, name: str, parameter: object) -> None:
        nonlocal count
        if threading.get_ident() == own and parameter is not None:
            count += 1
            if count > most:
                raise InputError(f"it has more layers than the file has weights ({most} tensors)")

    handle = register_module_parameter_registration_hook(note)
    try:
        yield
    finally:
        handle.remove()


# --------------------------------------------------------------------------------------------------
# The tensors of a model file that belong to adaptation, and the order among their numbers
#
# adaptation.between, .within       (directions,), of numbers alone
# adaptation.directions, .shares    (outputs, directions), of numbers alone
# adapted.weights                   (features, directions), of classes (features, classes)
# adapted.covariance, .start        (directions, features, features), of classes one matrix alone
# adapted.projection                (hidden, features - 1), where the last layer is wide
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# What the header of a model file may say: each field's kind and range, in one place
#
# Anyone may have written a file, checksum included. `check_header` holds its header to these fields
# and to each other; `tensor_layout` says which tensors then belong to it. Both come before anything
# is built or allocated. Fields that are not known here are left alone: a later version may have
# added them. Tensors that are not known are refused.
# --------------------------------------------------------------------------------------------------

Fields = Mapping[str, Kind]
LONGEST_TEXT = 9_999
MOST_NUMBERS = 1 << 20  # of one row
MOST_AXES = 6
MOST_MEMBERS = 10_000
MOST_STEPS = 1 << 53
LARGEST_HEADER = 1e300
SHORT = text(LONGEST_TEXT)
TEXTS = several(SHORT, MOST_LABELS)
LABELS = several(label(LONGEST_TEXT), MOST_LABELS, least=1)
ANY = Kind(lambda value: True, "anything")
OBJECT = Kind(lambda value: type(value) is dict, "an object")
YES_OR_NO = Kind(lambda value: type(value) is bool, "true or false")
COUNT = whole(0, MOST_STEPS)
FIGURE = maybe(number(-LARGEST_HEADER, LARGEST_HEADER))  # null where it was NaN or infinite
SHARE = Kind(lambda value: type(value) in (int, float) and 0 <= value < 1, "a number in [0, 1)")
DROPS = either(SHARE, several(SHARE, 10_000))
CALIBRATION = maybe(choice(*KINDS))
SCALAR = Kind(
    lambda value: value is None or type(value) in (bool, int, float) or SHORT.accepts(value),
    "null, a number or a text",
)

REQUIRED = {
    "estimator": SHORT,
    "params": OBJECT,
    "features": whole(1, MOST_NUMBERS),
    "feature_names": maybe(TEXTS),
    "target": OBJECT,
    "calibration": CALIBRATION,
    "training": OBJECT,
    "selection": maybe(OBJECT),
    "validation_scores": OBJECT,
}
OPTIONAL = {
    "input_shape": several(whole(1, MOST_NUMBERS), MOST_AXES, least=1),
    **dict.fromkeys(KEPT, maybe(TEXTS)),
    "conformal_groups": LABELS,
    "conformal_new_group": YES_OR_NO,
    "architecture": OBJECT,
    "method": choice(*MODELS),
    "epistemic": OBJECT,
    "missing": choice("refuse", "mean", "indicator"),  # before it was a parameter alone
    "encoding": OBJECT,
    "adaptation": OBJECT,
    "adapted": OBJECT,
    "live": OBJECT,
    "windows": OBJECT,
    "smoothing": OBJECT,
    "peers": OBJECT,
    "dates": TEXTS,
}
PARAMS = {"samples": whole(2, 10_000)}  # passes of one prediction, which all take memory
NUMBERS = {"shape": several(whole(1, MOST_LABELS), 1)}
CLASSES = {"classes": LABELS, "dtype": DTYPE}
TRAINING = {
    "seed": whole(0, 2**32 - 1),
    "rows": COUNT,
    "validation_rows": COUNT,
    "validated": SHORT,
}
TRAINING_OPTIONAL = {
    "teacher": SHORT,
    "constant_inputs": TEXTS,
    "budget": OBJECT,
    "findings": several(OBJECT, 10_000),
}
FINDING = {
    "code": SHORT,
    "severity": choice("info", "warning", "error"),
    "message": SHORT,
    "columns": TEXTS,
    "cure": SHORT,
    "option": SHORT,
}
SELECTION = {
    "by": choice("nll", "deviation_area"),
    "how": SHORT,
    "chosen": COUNT,
    "trials": several(OBJECT, 10_000, least=1),
}
TRIAL = {
    "likelihood": SHORT,
    "alpha": SHARE,
    "drop_prob": DROPS,
    "nll": FIGURE,
    "deviation_area": FIGURE,
    "calibration": FIGURE,
    "best_step": COUNT,
}
LENGTH = {"steps": COUNT, "nll": FIGURE}
TRIED = {
    "name": SHORT,
    "arguments": OBJECT,
    "parameters": COUNT,
    "nll": FIGURE,
    "chosen": YES_OR_NO,
}
BEHIND = {"difference": FIGURE, "standard_error": FIGURE}
SECOND = {"trial": COUNT, "behind": OBJECT}
NEED = dict.fromkeys(("flash", "ram", "multiply_adds"), COUNT)
NEEDED = Kind(
    lambda value: (
        type(value) is dict
        and value.keys() == NEED.keys()
        and all(NEED[name].accepts(one) for name, one in value.items())
    ),
    f"an object of whole numbers: {', '.join(NEED)}",
)
RECORDS: dict[str, tuple[Fields, Fields]] = {  # required and optional
    "trials": (TRIAL, {}),
    "lengths": (LENGTH, {}),
    "architectures": (TRIED, {"behind": maybe(OBJECT), "need": NEEDED}),
}
ARCHITECTURE = {
    "class": SHORT,
    "outputs": whole(1, MOST_LABELS),
    "members": whole(1, MOST_MEMBERS),
    "likelihood": SHORT,
    "alpha": SHARE,
    "drop_prob": DROPS,
    "input_drop_prob": SHARE,
}
ARGUMENTS = {"arguments": maybe(OBJECT)}
DENSE = {"hidden": several(whole(1, MOST_LABELS), 10_000)}  # of before architectures had classes
DIGEST = Kind(
    lambda value: type(value) is str and len(value) == 64 and set(value) <= set("0123456789abcdef"),
    "64 hexadecimal digits",
)
ADAPTATION = {"rows": number(1e-3, 1e9), "groups": COUNT}
LIVE = {
    "rows": number(1e-3, 1e9),
    "within": number(1e-6, 1.0),
    "between": number(0.0, LARGEST_HEADER),
    "keep": several(number(1e-6, MOST_KEPT), MOST_FILTERS, least=1),
    "eta": number(1e-6, 1.0),
}
ADAPTED = {"labels": whole(1, MOST_STEPS), "source": DIGEST}
EPISTEMIC = {"prior": number(1e-300, LARGEST_HEADER), "calibrations": OBJECT}


def check_header(header: Header) -> None:
    """Refuse a header with a field that is missing, of another kind or out of range."""
    check_fields(header, REQUIRED, OPTIONAL)
    features, shape = header["features"], shape_of(header)
    if math.prod(shape) > MOST_NUMBERS or shape[-1] != features:
        raise InputError(
            f"input_shape = {list(shape)} does not fit features = {features}, or a row has more "
            f"than {MOST_NUMBERS} numbers"
        )
    if "encoding" in header:
        if len(shape) != 1:
            raise InputError("encoding is there for windows, which have none")
        check_encoding(header["encoding"], features)
    if "windows" in header:
        recipe = Recipe.from_json(header["windows"])
        if (recipe.length, len(recipe.channels)) != shape:
            raise InputError(
                f"windows are of {recipe.length} samples of {len(recipe.channels)} channels, which "
                f"does not fit input_shape = {list(shape)}"
            )
    if "smoothing" in header:
        Smoothing.from_json(header["smoothing"])
    if "peers" in header:
        check_peers(header["peers"])
    names = header["feature_names"]
    if names is not None and len(names) != features:
        raise InputError(f"feature_names has {len(names)} names for {features} features")
    for name, value in header["params"].items():
        accepted = several(SCALAR, 10_000) if type(value) is list else SCALAR
        check_fields({name: value}, {name: PARAMS.get(name, accepted)}, at="params.")
    check_fields(
        header["target"], NUMBERS if "shape" in header["target"] else CLASSES, at="target."
    )
    _check_records(header)
    if "architecture" in header:
        _check_architecture(header)
    elif "method" not in header:
        raise InputError("lacks the field architecture")
    if "adaptation" in header:
        check_fields(header["adaptation"], ADAPTATION, at="adaptation.")
    if "live" in header:
        check_fields(header["live"], LIVE, at="live.")
    if "adapted" in header:
        check_fields(header["adapted"], ADAPTED, at="adapted.")
        if not {"adaptation", "epistemic", "architecture"} <= set(header):
            raise InputError("adapted is there without what a model adapts by")
    if "epistemic" in header:
        check_fields(header["epistemic"], EPISTEMIC, at="epistemic.")
        kinds = header["epistemic"]["calibrations"]
        own = {method: CALIBRATION for method in TOTALS if method in kinds}
        check_fields(kinds, {"laplace": CALIBRATION, **own}, at="epistemic.calibrations.")
        if strange := sorted(set(kinds) - set(TOTALS)):
            raise InputError(f"epistemic.calibrations names {strange[0]!r:.60}, unknown here")


def shape_of(header: Header) -> tuple[int, ...]:
    """Return the shape of a row; files of the first versions have the features alone."""
    return tuple(header.get("input_shape", (header["features"],)))


def missing_of(header: Header) -> str:
    """Return how missing values are treated; earlier files say so among the parameters alone."""
    said = header.get("missing", header["params"].get("missing", "refuse"))
    return said if said in ("mean", "indicator") else "refuse"


def network_shape_of(header: Header, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of what networks read of a row; tables of levels have these shapes."""
    if "encoding" not in header:
        return shape_of(header)
    found = without_tables(header["encoding"], header["features"])
    wide = sum(shape[1] for shape in found.shapes(shapes).values())
    if not 0 < found.width + wide <= MOST_NUMBERS:
        raise InputError(f"encoding makes {found.width + wide} numbers of a row")
    return (found.width + wide,)


def outputs_of(target: Json) -> int:
    """Return the number of outputs, or of classes."""
    return math.prod(target["shape"]) if "shape" in target else len(target["classes"])


def _check_records(header: Header) -> None:
    check_fields(header["training"], TRAINING, TRAINING_OPTIONAL, "training.")
    for place, finding in enumerate(header["training"].get("findings", ())):
        at = f"training.findings[{place}]."
        check_fields(finding, FINDING, at=at)
        if strange := sorted(set(finding) - set(FINDING)):
            raise InputError(f"{at}{strange[0]!s:.60} is unknown here")
    scores = header["validation_scores"]
    check_fields(scores, dict.fromkeys(scores, FIGURE), at="validation_scores.")
    selection = header["selection"]
    if selection is None:
        return
    more = dict.fromkeys(("lengths", "architectures"), maybe(several(OBJECT, 10_000)))
    more |= {"second": OBJECT, "cut": YES_OR_NO}
    check_fields(selection, SELECTION, more, "selection.")
    for name, (required, optional) in RECORDS.items():
        for number_of, record in enumerate(selection.get(name) or ()):
            at = f"selection.{name}[{number_of}]."
            check_fields(record, required, optional, at)
            if strange := sorted(set(record) - set(required) - set(optional)):
                raise InputError(f"{at}{strange[0]!s:.60} is unknown here")
            if record.get("behind") is not None:
                _check_behind(record["behind"], f"{at}behind.")
    tried = selection.get("architectures") or ()
    if len({"need" in one for one in tried}) > 1:
        raise InputError("selection.architectures has a need for some and not for all")
    numbers = {"chosen": selection["chosen"]}
    if "second" in selection:
        check_fields(selection["second"], SECOND, at="selection.second.")
        _check_behind(selection["second"]["behind"], "selection.second.behind.")
        numbers["second.trial"] = selection["second"]["trial"]
    for name, value in numbers.items():
        if value >= len(selection["trials"]):
            raise InputError(
                f"selection.{name} = {value} is none of {len(selection['trials'])} trials"
            )


def _check_behind(value: Json, at: str) -> None:
    check_fields(value, BEHIND, at=at)
    if strange := sorted(set(value) - set(BEHIND)):
        raise InputError(f"{at}{strange[0]!s:.60} is unknown here")


def _check_architecture(header: Header) -> None:
    saved, outputs = header["architecture"], outputs_of(header["target"])
    check_fields(saved, ARCHITECTURE, ARGUMENTS, "architecture.")
    if saved["class"] == "dense":
        check_fields(saved, DENSE, at="architecture.")
    if saved["outputs"] != outputs:
        raise InputError(
            f"architecture.outputs = {saved['outputs']} does not fit the target, which has "
            f"{outputs}"
        )


# --------------------------------------------------------------------------------------------------
# The tensors of a model file: names, the shapes that fit its header, and the range of each
#
#     input.shift, .scale          (channels,), the last axis of what networks read of a row
#     encoding.K                   (levels + 2, width), the vectors of a category
#     target.shift, .scale         (outputs,), of numbers alone
#     calibration.*                by its kind; the same under epistemic.laplace and epistemic.delta
#     conformal.scores, .group     (rows, outputs), of classes (rows, 1); (rows,)
#     guard.low, .high, .missing   (channels,), of the row itself; .levels too, with categories
#     guard.fallback               (outputs,), of classes their frequencies
#     novelty.*, unlike.*          columns, components and Gaussians that agree
#     rows.X, .y                   (rows, *input_shape), (rows, *target.shape)
#     epistemic.root               square; .ratio, .noise_share (outputs,)
#     adaptation.*, adapted.*      by `adapted_layout`
#     gp.*                         by its method
#     network.K.*                  by the architecture, in `store_networks`
#
# A new tensor is one line here. Shapes are compared before a number is looked at.
# --------------------------------------------------------------------------------------------------

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
    columns = inputs * (NOVELTY_NUMBERS if len(shape) == 2 else 1)
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
