"""The protocol of an architecture, and the check of `hidden`."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import nn

from rdeepsense import _torch
from rdeepsense.arrays import Floats
from rdeepsense.errors import InputError

# --------------------------------------------------------------------------------------------------
# Layers that need the standardization of the inputs
# --------------------------------------------------------------------------------------------------


class InputUnits(nn.Module):
    """Base of layers that compute in the sensors' own units; a fit tells them what those are."""

    def set_units(self, shift: Floats, scale: Floats) -> None:
        """Take note that inputs are (value - shift) / scale."""
        raise NotImplementedError


def set_input_units(network: nn.Module, shift: Floats, scale: Floats) -> None:
    """Tell all such layers of a network how its inputs were standardised."""
    for module in network.modules():
        if isinstance(module, InputUnits):
            module.set_units(shift, scale)


# --------------------------------------------------------------------------------------------------
# The protocol of architectures
# --------------------------------------------------------------------------------------------------

Shape = tuple[int, ...]  # of one row: (features,), or (time, channels) of a window


@runtime_checkable
class Architecture(Protocol):
    """A specification from which networks are built; give it to an estimator as `network=`.

    `rdeepsense.networks.register` makes one known to model files, by the name of its class.
    """

    def check(self, shape: Shape) -> None:
        """Refuse rows of a shape that the network cannot take, with `InputError`."""

    def build(self, shape: Shape, outputs: int, member: int) -> nn.Module:
        """Build the network of a member, whose last Linear layer has one column per output.

        Initial weights come from torch's default generator, which is seeded for each member and put
        back afterwards.
        """

    def arguments(self) -> dict[str, Any] | None:  # Any: whatever JSON holds
        """Return what the constructor takes, as JSON; None where a file cannot hold it."""


@dataclass(frozen=True)
class Own:
    """A torch network of the user's own, which starts from its present weights."""

    module: nn.Module

    def check(self, shape: Shape) -> None:
        """Accept every shape: the network itself refuses what it cannot take."""

    def build(self, shape: Shape, outputs: int, member: int) -> nn.Module:
        """Return the module; further members of an ensemble are copies with weights drawn anew."""
        if member == 0:
            return self.module
        network = copy.deepcopy(self.module)
        for module in network.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
        return network

    def arguments(self) -> None:
        return None


def built(
    architecture: Architecture, shape: Shape, outputs: int, member: int, seed: int
) -> nn.Module:
    """Build the network of a member, its initial weights a function of the seed alone."""
    own = architecture.module.modules() if isinstance(architecture, Own) else [architecture]
    with _torch.initialising(seed + member, _torch.draws_elsewhere(own)):
        return architecture.build(shape, outputs, member)


def name_of(architecture: Architecture) -> str:
    """Return what a model file calls an architecture: its class, or that of the user's module."""
    own = architecture.module if isinstance(architecture, Own) else architecture
    return type(own).__name__


def check_table(shape: Shape) -> None:
    """Refuse windows where rows of numbers are needed."""
    if len(shape) != 1:
        raise InputError(
            f"X has {len(shape) + 1} axes; accepted here: (rows, features). Windows (rows, time, "
            "channels) need network=: rdeepsense.networks.DeepSense(...) or a network of your own; "
            'hidden="auto" chooses one'
        )
