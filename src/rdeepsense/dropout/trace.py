"""The layers of a network in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.rnn import RNNCellBase

from rdeepsense.dropout.layers import DropoutConv1d, DropoutConv2d, DropoutLayer, DropoutLinear
from rdeepsense.dropout.recurrent import DropoutGRU, DropoutLSTM
from rdeepsense.errors import ConversionError

DROPOUT_CLASSES: dict[type[nn.Module], type[DropoutLayer]] = {
    nn.Linear: DropoutLinear,
    nn.Conv1d: DropoutConv1d,
    nn.Conv2d: DropoutConv2d,
    nn.GRU: DropoutGRU,
    nn.LSTM: DropoutLSTM,
}
# Torch's layers with weights that the recipe knows, or knows that it cannot treat. Normalisations
# and whatever a network computes by itself are left alone.
WEIGHTED = (nn.Linear, nn.Bilinear, _ConvNd, nn.RNNBase, RNNCellBase, nn.MultiheadAttention)


class Layer(NamedTuple):
    """A layer or Dropout module."""

    name: str
    module: nn.Module
    reads: bool  # nothing but the sensors
    width: int  # numbers that come out for one row


def layers(body: nn.Module, example: Tensor | None) -> list[Layer]:
    """List layers and Dropout modules by execution on an example, or else by registration.

    Without an example only the first layer counts as one that reads the sensors.
    """
    named: list[tuple[str, nn.Module]] = [
        (n, m) for n, m in body.named_modules() if isinstance(m, (*WEIGHTED, _DropoutNd))
    ]
    if example is None:
        first = next((m for _, m in named if isinstance(m, WEIGHTED)), None)
        return [Layer(name, module, module is first, _units(module)) for name, module in named]
    names = {module: name for name, module in named}
    seen: dict[nn.Module, Layer] = {}

    def note(module: nn.Module, args: tuple[object, ...], out: Tensor | tuple[Tensor, ...]) -> None:
        reads = not any(getattr(a, "requires_grad", False) for a in args)
        values = out[0] if isinstance(out, tuple) else out
        width = values.data.numel() // len(example)
        seen.setdefault(module, Layer(names[module], module, reads, width))

    hooks = [module.register_forward_hook(note) for _, module in named]
    try:
        with _gradients_of([m for _, m in named], body):
            evaluate(body, example, gradients=True)
    finally:
        for hook in hooks:
            hook.remove()
    return list(seen.values())


def _units(layer: nn.Module) -> int:
    """Return the width of a layer as far as it can be told without an example."""
    names = ("out_features", "out_channels", "hidden_size")
    return max(int(getattr(layer, name, 1)) for name in names)


@contextmanager
def _gradients_of(chosen: Sequence[nn.Module], body: nn.Module) -> Iterator[None]:
    """Turn gradients on for these layers' weights alone: they mark whatever a layer has touched."""
    before = {p: p.requires_grad for p in body.parameters()}
    touched = {p for module in chosen for p in module.parameters()}
    try:
        for parameter in before:
            parameter.requires_grad_(parameter in touched)
        yield
    finally:
        for parameter, wanted in before.items():
            parameter.requires_grad_(wanted)


def evaluate(body: nn.Module, example: Tensor, gradients: bool = False) -> object:
    """Run one pass in evaluation mode, leaving the mode as it was."""
    training = {module: module.training for module in body.modules()}
    body.eval()
    try:
        with torch.set_grad_enabled(gradients):
            return body(example)
    finally:
        for module, mode in training.items():
            module.training = mode


def dropout_class_for(name: str, layer: nn.Module) -> type[DropoutLayer]:
    """Return what a layer becomes, or refuse one that it would not do the same as."""
    kind = next((k for k in DROPOUT_CLASSES if isinstance(layer, k)), None)
    accepted = ", ".join(k.__name__ for k in DROPOUT_CLASSES)
    if kind is None:
        raise ConversionError(
            f"layer {name!r} is a {type(layer).__name__}, which cannot be converted; "
            f"accepted: {accepted}"
        )
    if type(layer).forward is not kind.forward:
        raise ConversionError(
            f"layer {name!r} is a {type(layer).__name__} with a forward of its own; "
            f"only plain layers can be converted: {accepted}"
        )
    if getattr(layer, "proj_size", 0):
        raise ConversionError(
            f"layer {name!r} is an LSTM with proj_size = {layer.proj_size}; accepted: 0"
        )
    return DROPOUT_CLASSES[kind]
