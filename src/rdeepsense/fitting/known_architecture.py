"""The architecture that a model file names, held to the file's weights before it is built.

A header of a few bytes can ask for layers of any size and number. So the network is first built
without memory (torch's meta device), given up as soon as it has more parameters than the file has
tensors, and its shapes are compared with theirs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from rdeepsense.errors import InputError
from rdeepsense.heads import head_named
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.tensors import tupled
from rdeepsense.networks import Architecture, Shape, architecture_named
from rdeepsense.networks.base import built

# What older files call things, by the class they belong to.
RENAMED = {"DeepSense": {"turn": "rotation_std"}}
SPARE = 1 << 20  # numbers that a network may compute for itself, as tables of cosines


def known_architecture(
    saved: Header, shape: Shape, state: Mapping[str, NDArray[Any]]
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
    architecture: Architecture, shape: Shape, outputs: int, tensors: int
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


def example_shape(architecture: Architecture, shape: Shape) -> Shape:
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
