"""Layers of torch as steps: what each kind of module does to one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor, nn

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.pointwise import Activation, Affine, Mean
from rdeepsense.deploy.folded.graph.spectrum import Spectrum
from rdeepsense.deploy.folded.graph.weighted import Convolution, Linear, Pair, Pool
from rdeepsense.deploy.tracing.recurrent import recurrent
from rdeepsense.deploy.tracing.tape import Tape, floats
from rdeepsense.dropout.layers import (
    DropoutConv1d,
    DropoutConv2d,
    DropoutEntries,
    DropoutGRU,
    DropoutLinear,
    DropoutLSTM,
)
from rdeepsense.networks.deepsense import FrequencyResponse, RandomRotation, RandomRounding

# Any: what a module returns, a tensor or tuples of them.
Rule = Callable[[Tape, Any, tuple[Tensor, ...], Any], None]


def rule_for(module: nn.Module) -> Rule | None:
    """Return how a module becomes steps; None for one that is looked into."""
    # The exact type: a subclass may have a forward of its own.
    return RULES.get(type(module))


def _linear(tape: Tape, layer: nn.Linear, given: tuple[Tensor, ...], out: Tensor) -> None:
    weight = floats(layer.weight)
    bias = np.zeros(len(weight)) if layer.bias is None else floats(layer.bias)
    tape.note(tape.add(Linear((tape.value(given[0]),), False, weight, bias)), out)


def _convolution(
    tape: Tape, layer: nn.Conv1d | nn.Conv2d, given: tuple[Tensor, ...], out: Tensor
) -> None:
    if layer.padding_mode != "zeros":
        raise tape.refusal(f"padding_mode={layer.padding_mode!r} is not 'zeros'")
    weight = floats(layer.weight)
    weight = weight[:, :, None] if weight.ndim == 3 else weight
    bias = np.zeros(len(weight)) if layer.bias is None else floats(layer.bias)
    dilation = _pair(layer, layer.dilation, 1)
    padding = layer.padding
    if padding == "same":
        around = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        if any(n % 2 for n in around):
            raise tape.refusal("padding='same' is not the same on both sides of an even kernel")
        pads = (around[0] // 2, around[1] // 2)
    else:
        pads = (0, 0) if padding == "valid" else _pair(layer, padding, 0)
    height, width = _plane(tape, given[0], layer)
    node = Convolution(
        (tape.value(given[0]),),
        height,
        width,
        _pair(layer, layer.stride, 1),
        pads,
        dilation,
        layer.groups,
        False,
        weight,
        bias,
    )
    tape.note(tape.add(node), out)


def _norm(
    tape: Tape, layer: nn.BatchNorm1d | nn.BatchNorm2d, given: tuple[Tensor, ...], out: Tensor
) -> None:
    if layer.running_mean is None or layer.running_var is None:
        raise tape.refusal("a batch norm without track_running_stats depends on the other rows")
    mean, var = floats(layer.running_mean), floats(layer.running_var)
    scale: Floats = 1 / np.sqrt(var + layer.eps)
    shift: Floats = -mean * scale
    if layer.affine:
        scale, shift = scale * floats(layer.weight), shift * floats(layer.weight)
        shift = shift + floats(layer.bias)
    tape.note(tape.add(Affine((tape.value(given[0]),), False, scale, shift)), out)


def _activation(name: str) -> Rule:
    def rule(tape: Tape, layer: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        tape.note(tape.add(Activation((tape.value(given[0]),), name)), out)

    return rule


def _same(tape: Tape, layer: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
    tape.note(tape.value(given[0]), out)


def _spectrum(tape: Tape, layer: FrequencyResponse, given: tuple[Tensor, ...], out: Tensor) -> None:
    channels = given[0].shape[-1]
    tape.note(tape.add(Spectrum((tape.value(given[0]),), layer.interval, channels)), out)


# Any: torch's types of kernels are int or tuples, by class.
def _pool(tape: Tape, layer: Any, given: tuple[Tensor, ...], out: Tensor) -> None:
    plain = _pair(layer, layer.padding, 0) == (0, 0) and not layer.ceil_mode
    if not plain or _pair(layer, getattr(layer, "dilation", 1), 1) != (1, 1):
        raise tape.refusal("pooling with padding, dilation or ceil_mode")
    kernel = _pair(layer, layer.kernel_size, 1)
    stride = kernel if layer.stride is None else _pair(layer, layer.stride, 1)
    name = "max" if isinstance(layer, nn.MaxPool1d | nn.MaxPool2d) else "mean"
    height, width = _plane(tape, given[0], layer)
    node = Pool((tape.value(given[0]),), height, width, stride, kernel, name)
    tape.note(tape.add(node), out)


def _global_mean(tape: Tape, layer: Any, given: tuple[Tensor, ...], out: Tensor) -> None:
    size = layer.output_size
    if any(n != 1 for n in (size if isinstance(size, tuple) else (size,))):
        raise tape.refusal(f"adaptive pooling to {size}, not to 1")
    height, width = _plane(tape, given[0], layer)
    tape.note(tape.add(Mean((tape.value(given[0]),), height * width, 1)), out)


def _plane(tape: Tape, x: Tensor, layer: nn.Module) -> Pair:
    """Return height and width of (1, channels, height, width), or (1, channels, width)."""
    axes = 3 if type(layer).__name__.endswith("1d") else 4
    if x.ndim != axes or len(x) != 1:
        raise tape.refusal(f"it reads a tensor of shape {tuple(x.shape)}, which is no batch")
    return (x.shape[2], x.shape[3]) if axes == 4 else (1, x.shape[2])


def _pair(layer: nn.Module, value: Any, alone: int) -> Pair:
    """Return a setting for height and width; of one axis that of the height is `alone`."""
    many = value if isinstance(value, tuple) else (value, value)
    if type(layer).__name__.endswith("1d"):
        return alone, int(many[0])
    return int(many[0]), int(many[1])


RULES: dict[type[nn.Module], Rule] = {
    **dict.fromkeys((nn.Linear, DropoutLinear), _linear),
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, DropoutConv1d, DropoutConv2d), _convolution),
    **dict.fromkeys((nn.GRU, nn.LSTM, DropoutGRU, DropoutLSTM), recurrent),
    **dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d), _norm),
    nn.ReLU: _activation("relu"),
    nn.Sigmoid: _activation("sigmoid"),
    nn.Tanh: _activation("tanh"),
    **dict.fromkeys(
        (
            nn.Identity,
            nn.Dropout,
            nn.Dropout1d,
            nn.Dropout2d,
            DropoutEntries,
            RandomRotation,
            RandomRounding,
        ),
        _same,
    ),
    FrequencyResponse: _spectrum,
    **dict.fromkeys((nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d), _pool),
    **dict.fromkeys((nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d), _global_mean),
}
