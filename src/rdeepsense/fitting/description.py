"""The header of a model file: its schema, and the shapes of the tensors that it promises."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from rdeepsense import encoding
from rdeepsense.calibration import maps
from rdeepsense.data.checks import KEPT
from rdeepsense.encoding import check_encoding
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import CALIBRATION
from rdeepsense.fitting.gp import MODELS, process_layout
from rdeepsense.fitting.parts import PARTS, columns_of
from rdeepsense.fitting.records import DROP_PROBS, SHARE, check_records
from rdeepsense.heads import head_named
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.layout import (
    LABELS,
    OBJECT,
    SHORT,
    TEXTS,
    TINY,
    Context,
    FilePart,
    Layout,
    Numbers,
    check_range,
)
from rdeepsense.modelfile.schema import (
    DTYPE,
    MOST_LABELS,
    Kind,
    check_fields,
    choice,
    maybe,
    several,
    whole,
)
from rdeepsense.modelfile.tensors import Tensors, tupled
from rdeepsense.networks import Architecture, architecture_named
from rdeepsense.networks import Shape as NetworkShape
from rdeepsense.networks.base import built
from rdeepsense.training.checkpoint import LARGEST_WEIGHT

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
# The header of a model file: kind and range of each field
#
# Files are untrusted, even with a valid checksum. `check_header` checks the fields and their
# consistency, `check_tensors` names, shapes and ranges of the tensors. Both run before anything is
# built or allocated. Unknown fields are left alone, since a later version may have added them.
# Unknown tensors are refused.
# --------------------------------------------------------------------------------------------------

MOST_NUMBERS = 1 << 20  # of one row
MOST_AXES = 6
MOST_MEMBERS = 10_000
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
    "architecture": OBJECT,
    "method": choice(*MODELS),
    "missing": choice("refuse", "mean", "indicator"),  # before it was a parameter alone
    "encoding": OBJECT,
    "dates": TEXTS,
}
PARAMS = {"samples": whole(2, 10_000)}  # passes of one prediction, which all take memory
NUMBERS = {"shape": several(whole(1, MOST_LABELS), 1)}
CLASSES = {"classes": LABELS, "dtype": DTYPE}
ARCHITECTURE = {
    "class": SHORT,
    "outputs": whole(1, MOST_LABELS),
    "members": whole(1, MOST_MEMBERS),
    "likelihood": SHORT,
    "alpha": SHARE,
    "drop_prob": DROP_PROBS,
    "input_drop_prob": SHARE,
}
ARGUMENTS = {"arguments": maybe(OBJECT)}
DENSE = {"hidden": several(whole(1, MOST_LABELS), 10_000)}  # of before architectures had classes


def check_header(header: Header) -> None:
    """Refuse a header with a field that is missing, of another kind or out of range."""
    optional = OPTIONAL | {name: kind for part in PARTS for name, kind in part.fields.items()}
    check_fields(header, REQUIRED, optional)
    context = Context(header)
    features, shape = header["features"], context.shape
    if math.prod(shape) > MOST_NUMBERS or shape[-1] != features:
        raise InputError(
            f"input_shape = {list(shape)} does not fit features = {features}, or a row has more "
            f"than {MOST_NUMBERS} numbers"
        )
    if "encoding" in header:
        if len(shape) != 1:
            raise InputError("encoding is there for windows, which have none")
        check_encoding(header["encoding"], features)
    for part in PARTS:
        if part.section is not None and part.section in header:
            part.check_header(context)
    names = header["feature_names"]
    if names is not None and len(names) != features:
        raise InputError(f"feature_names has {len(names)} names for {features} features")
    for name, value in header["params"].items():
        accepted = several(SCALAR, 10_000) if type(value) is list else SCALAR
        check_fields({name: value}, {name: PARAMS.get(name, accepted)}, at="params.")
    check_fields(
        header["target"], NUMBERS if "shape" in header["target"] else CLASSES, at="target."
    )
    check_records(header)
    if "architecture" in header:
        _check_architecture(header)
    elif "method" not in header:
        raise InputError("lacks the field architecture")


def network_shape_of(header: Header, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of what networks read of a row; tables of levels have these shapes."""
    found = columns_of(header)
    if found is None:
        return Context(header).shape
    wide = sum(shape[1] for shape in found.shapes(shapes).values())
    if not 0 < found.width + wide <= MOST_NUMBERS:
        raise InputError(f"encoding makes {found.width + wide} numbers of a row")
    return (found.width + wide,)


def _check_architecture(header: Header) -> None:
    saved, outputs = header["architecture"], Context(header).outputs
    check_fields(saved, ARCHITECTURE, ARGUMENTS, "architecture.")
    if saved["class"] == "dense":
        check_fields(saved, DENSE, at="architecture.")
    if saved["outputs"] != outputs:
        raise InputError(
            f"architecture.outputs = {saved['outputs']} does not fit the target, which has "
            f"{outputs}"
        )


# --------------------------------------------------------------------------------------------------
# The tensors of a model file: names, shapes, ranges
#
#     input.shift, .scale          (channels,), the last axis of what networks read of a row
#     encoding.K                   (levels + 2, width), the vectors of a category
#     target.shift, .scale         (outputs,), of numbers alone
#     calibration.*                by its kind
#     gp.*                         by its method, in `fitting.gp`
#     network.K.*                  by the architecture, in `fitting.store`
#
# and those of the parts. Shapes are compared before any value is read.
# --------------------------------------------------------------------------------------------------

NETWORK = "network."
WEIGHTS = Numbers((), -LARGEST_WEIGHT, LARGEST_WEIGHT)


def check_tensors(header: Header, tensors: Tensors) -> Context:
    """Refuse tensors that are missing, unknown, of another shape or type, or out of range.

    Returns what parts are read with.
    """
    shapes = {name: array.shape for name, array in tensors.items()}
    context = Context(header, shapes, network_shape_of(header, shapes))
    parts = [part for part in PARTS if part.is_in(header, shapes)]
    wanted = dict(_wanted(context, parts))
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
    maps.check_knots("calibration", tensors)
    for part in parts:
        part.check_numbers(tensors, context)
    return context


def _wanted(context: Context, parts: Iterable[FilePart[Any]]) -> Layout:
    """Name all tensors but those of networks."""
    header, channels = context.header, context.network_shape[-1:]
    yield "input.shift", Numbers(channels, -1e308, 1e308)
    yield "input.scale", Numbers(channels, TINY, 1e308)
    if (columns := columns_of(header)) is not None:
        for name, shape in columns.shapes(context.shapes).items():
            yield name, Numbers(shape, -encoding.LARGEST, encoding.LARGEST)
    if not context.is_classes:
        yield "target.shift", Numbers((context.outputs,))
        yield "target.scale", Numbers((context.outputs,), TINY)
    yield from maps.layout("calibration", header["calibration"], context)
    for part in parts:
        yield from part.layout(context)
    if "architecture" not in header:
        yield from process_layout(context)
