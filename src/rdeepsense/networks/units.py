"""Layers that need to know how the inputs were standardised."""

from __future__ import annotations

from torch import nn

from rdeepsense.arrays import Floats


class InputUnits(nn.Module):
    """Base of layers that compute in the sensors' own units; a fit tells them what those are."""

    def set_units(self, shift: Floats, scale: Floats) -> None:
        """Take note that inputs are (value - shift) / scale."""
        raise NotImplementedError


def tell_units(network: nn.Module, shift: Floats, scale: Floats) -> None:
    """Tell all such layers of a network how its inputs were standardised."""
    for module in network.modules():
        if isinstance(module, InputUnits):
            module.set_units(shift, scale)
