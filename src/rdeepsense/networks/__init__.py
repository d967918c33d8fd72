"""Architectures: networks that can be trained, and named in a model file."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from rdeepsense.errors import InputError
from rdeepsense.networks.base import Architecture, Own, Shape, check_table, name_of
from rdeepsense.networks.deepsense import DeepSense
from rdeepsense.networks.dense import Dense, Flattened, dense
from rdeepsense.networks.periodic import Periodic

_ARCHITECTURES: dict[str, type[Architecture]] = {}

__all__ = [
    "Architecture",
    "DeepSense",
    "Dense",
    "Flattened",
    "Own",
    "Periodic",
    "Shape",
    "architecture_named",
    "architecture_of",
    "check_table",
    "dense",
    "name_of",
    "register",
    "unregister",
]


def register(architecture: type[Architecture]) -> None:
    """Make an architecture of your own known to model files, by the name of its class.

    Register it at import, so that every process has done so before it loads a file that names it.
    """
    name = architecture.__name__
    if _ARCHITECTURES.get(name, architecture) is not architecture:
        raise InputError(f"an architecture named {name!r} is registered already")
    _ARCHITECTURES[name] = architecture


def unregister(architecture: type[Architecture]) -> None:
    """Forget an architecture again, as a notebook that defines it anew must."""
    _ARCHITECTURES.pop(architecture.__name__)


register(Dense)
register(DeepSense)
register(Periodic)
register(Flattened)


def architecture_named(name: str) -> type[Architecture] | None:
    """Return the architecture that a file names; None for a network of the user's own."""
    return _ARCHITECTURES.get(name)


def architecture_of(
    hidden: Sequence[int] | str, network: nn.Module | Architecture | None
) -> Architecture:
    """Return what the arguments `hidden` and `network` of an estimator stand for.

    Where `hidden` is "auto" that is where a search begins.
    """
    if network is None:
        return Dense() if hidden == "auto" else Dense(hidden)  # type: ignore[arg-type]
    if isinstance(network, nn.Module):
        return Own(network)
    if isinstance(network, type) or not isinstance(network, Architecture):
        raise InputError(
            f"network is a {type(network).__name__}, not a torch.nn.Module or one of "
            f"rdeepsense.networks: {', '.join(_ARCHITECTURES)}"
        )
    return network
