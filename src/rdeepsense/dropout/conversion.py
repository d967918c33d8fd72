"""Conversion of a PyTorch network: dropout on its layers and a distribution as its output."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.rnn import RNNCellBase

from rdeepsense import _torch
from rdeepsense._torch import exclusive
from rdeepsense.dropout.layers import (
    DropoutConv1d,
    DropoutConv2d,
    DropoutEntries,
    DropoutGRU,
    DropoutLayer,
    DropoutLinear,
    DropoutLSTM,
    DropoutRNN,
)
from rdeepsense.errors import ConversionError, InputError
from rdeepsense.heads import Head, Params, head_named

# --------------------------------------------------------------------------------------------------
# The converted network
# --------------------------------------------------------------------------------------------------


class StochasticNetwork(nn.Module):
    """A converted network: the user's own forward, then the head.

    In training mode each call draws dropout masks; in evaluation mode it is the single
    deterministic pass of section 3.3. `width` is the most numbers that a layer makes of one row,
    which bounds how many rows fit in memory; 0 where it is not known. A `noisy` network draws from
    torch's default generator in evaluation mode as well, as some modules of the user's own do.
    """

    noisy = False

    def __init__(self, body: nn.Module, head: Head, output: str, width: int = 0) -> None:
        super().__init__()
        self.body = body
        self.head = head
        self.output = output
        self.width = width

    def forward(self, x: Tensor) -> Params:
        raw = self.body(x)
        if not isinstance(raw, Tensor) or raw.ndim < 1 or raw.shape[-1] != self.head.columns:
            raise ConversionError(
                f"the network's forward must return the {self.head.columns} columns of its output "
                f"layer {self.output!r}, it returned {describe(raw)}"
            )
        params: Params = self.head(raw)
        return params

    def twin(self) -> Self:
        """Return a network with the same weights, whose modes and hooks are its own.

        Threads share fitted networks: what turns dropout on or looks inside takes a twin.
        """
        tensors = [*self.parameters(), *self.buffers()]
        return copy.deepcopy(self, {id(tensor): tensor for tensor in tensors})

    @property
    def draws_elsewhere(self) -> bool:
        """Whether a pass in the present mode may draw from torch's default generator."""
        training = any(module.training for module in self.modules())
        return self.noisy or (training and _torch.draws_elsewhere(self.modules()))

    @contextmanager
    def drawing(self, seed: int, device: torch.device) -> Iterator[None]:
        """Draw what passes in the present mode draw from this seed; see `randomness.drawing`.

        On a GPU no thread that trains sets another precision meanwhile.
        """
        # After the generators' lock, as in training: two orders would be a deadlock.
        still = exclusive("precision") if device.type == "cuda" else nullcontext()
        with _torch.drawing(seed, device, self.draws_elsewhere), still:
            yield

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Turn dropout on, everything else to evaluation mode: for Monte Carlo passes.

        It changes this network for whoever uses it, so that a shared one is sampled by a `twin`.
        """
        before = {module: module.training for module in self.modules()}
        self.eval()
        for module in self.modules():
            if isinstance(module, DropoutLayer | _DropoutNd):
                module.training = True
        try:
            yield
        finally:
            for module, training in before.items():
                module.training = training


def describe(value: object) -> str:
    """Describe in words what a forward returned."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "nothing" if value is None else f"a {type(value).__name__}"


# --------------------------------------------------------------------------------------------------
# Layers of a network in the order of execution
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Conversion of a network (section 3.1)
# --------------------------------------------------------------------------------------------------


def convert(
    network: nn.Module,
    likelihood: str = "gaussian",
    drop_prob: float | Sequence[float] = 0.1,
    input_drop_prob: float = 0.0,
    output: str | None = None,
    example: Tensor | None = None,
) -> StochasticNetwork:
    """Turn a network into a stochastic one with a distribution head.

    Works on a copy and keeps the trained weights, as mean or logits. Every layer but the first
    drops its input with `drop_prob` (one value, or one per such layer); the first, which reads the
    sensors, with `input_drop_prob`, and so do others that read nothing else, which takes an
    `example` to find out. Layers are Linear; Conv1d and Conv2d, which drop whole channels; GRU and
    LSTM (a stack is one layer), which draw one mask per sequence for their inputs, and one for the
    states of every layer and direction; states of a layer that reads the sensors take the next
    layer's `drop_prob`. Other layers with weights are refused, normalisations left alone.

    A Dropout module that already stands before a Linear layer keeps its place and takes that
    layer's probability, so that none is stacked on another; one before a layer with masks of
    another kind, or after the output layer, is switched off, and so is a recurrent layer's own
    between its layers. Dropout called as a function is not seen.

    The output layer is `output` by name, or the last Linear layer: in the order of execution when
    an `example` batch of inputs is given, of registration otherwise.
    """
    body = copy.deepcopy(network)
    device = next((p.device for p in body.parameters()), _torch.CPU)
    with _torch.watching(body.modules(), device) as watch:
        converted = _converted(body, likelihood, drop_prob, input_drop_prob, output, example)
    converted.noisy = watch.drawn
    return converted.train(network.training)


def _converted(
    body: nn.Module,
    likelihood: str,
    drop_prob: float | Sequence[float],
    input_drop_prob: float,
    output: str | None,
    example: Tensor | None,
) -> StochasticNetwork:
    """Convert a network in place."""
    head_type = head_named(likelihood)
    order = layers(body, example)
    linear = [name for name, module, *_ in order if isinstance(module, nn.Linear)]
    if not linear:
        raise ConversionError(
            f"{type(body).__name__} has no Linear layer for the output; "
            f"its modules: {', '.join(type(m).__name__ for m in body.modules())}"
        )
    if output is None:
        output = linear[-1]
    if output not in linear:
        raise ConversionError(
            f"output = {output!r} is not a Linear layer of the network; it has: {', '.join(linear)}"
        )
    end = next(k for k, found in enumerate(order, 1) if found.name == output)
    weighted = [found for found in order[:end] if not isinstance(found.module, _DropoutNd)]
    hidden = _hidden_probs(drop_prob, sum(not found.reads for found in weighted))
    _insert_dropout(order[:end], check_drop_prob(input_drop_prob, "input_drop_prob"), hidden)
    for _, module, *_ in order[end:]:  # what runs after the output layer is outside of the recipe
        if isinstance(module, _DropoutNd):
            module.p = 0.0
    for module in body.modules():
        if type(module) is nn.Dropout:
            module.__class__ = DropoutEntries

    layer = body.get_submodule(output)
    assert isinstance(layer, nn.Linear)
    if layer.out_features < head_type.fewest_outputs:
        raise ConversionError(
            f"layer {output!r} has {layer.out_features} output; the {likelihood} likelihood needs "
            f"{head_type.fewest_outputs} or more"
        )
    head = head_type(layer.out_features)
    _check_returns(body, output, layer, example, order)
    _widen(layer, head)
    device = layer.weight.device
    width = max(head.columns, *(found.width for found in order))
    return StochasticNetwork(body, head.to(device), output, width)


def check_drop_prob(value: float, name: str = "drop_prob") -> float:
    """Check that a drop probability is in [0, 1). The paper's p is 1 - drop_prob."""
    if isinstance(value, str | bool) or not 0 <= value < 1:
        raise InputError(
            f"{name} = {value!r} is not in [0, 1); it is the probability to DROP a unit"
        )
    return float(value)


def _hidden_probs(drop_prob: float | Sequence[float], hidden: int) -> list[float]:
    """Return the probability of each layer that reads other layers."""
    if isinstance(drop_prob, list | tuple):
        if len(drop_prob) != hidden:
            raise InputError(
                f"drop_prob has {len(drop_prob)} values, the network {hidden} layers after the "
                "first; give one value, or one per such layer"
            )
        return [check_drop_prob(value) for value in drop_prob]
    return [check_drop_prob(drop_prob)] * hidden  # type: ignore[arg-type]


def _insert_dropout(order: list[Layer], input_drop_prob: float, hidden: list[float]) -> None:
    """Give each layer its dropout, in a Dropout that stands there or in the layer itself."""
    pending: list[_DropoutNd] = []
    for name, module, reads, _ in order:
        if isinstance(module, _DropoutNd):
            pending.append(module)
            continue
        kind = dropout_class_for(name, module)
        states = hidden[0] if hidden else 0.0  # of this layer, or of the one after the sensors'
        drop_prob = input_drop_prob if reads else hidden.pop(0)
        if issubclass(kind, DropoutRNN):
            kind.become(module, drop_prob, states)
        else:
            kind.become(module, 0.0 if pending and kind is DropoutLinear else drop_prob)
        for dropout in pending:
            dropout.p = drop_prob if kind is DropoutLinear else 0.0
        pending = []


def _check_returns(
    body: nn.Module, output: str, layer: nn.Linear, example: Tensor | None, order: list[Layer]
) -> None:
    """Refuse a network whose forward changes the output layer's numbers, or returns others."""
    if example is None:
        example = _guess_example(body, order)
    if example is None:
        return  # the input has another form; every forward call checks the columns
    seen: list[Tensor] = []
    hook = layer.register_forward_hook(lambda _m, _args, out: seen.append(out))
    try:
        returned = evaluate(body, example)
    finally:
        hook.remove()
    if (
        not seen
        or not isinstance(returned, Tensor)
        or returned.numel() != seen[-1].numel()
        or not torch.equal(returned.flatten(), seen[-1].flatten())
    ):
        raise ConversionError(
            f"the network's forward does not return the columns of its output layer {output!r} "
            f"as they are: the layer gave {describe(seen[-1] if seen else None)}, forward "
            f"returned {describe(returned)}. Leave out an activation after the last layer (the "
            "head has its own), or name the layer with output= or give example="
        )


def _guess_example(body: nn.Module, order: list[Layer]) -> Tensor | None:
    """Find a batch that the network takes, as wide as one of its Linear layers, or None."""
    for module in (m for _, m, *_ in order if isinstance(m, nn.Linear)):
        example = torch.linspace(-1, 1, module.in_features).to(module.weight).repeat(2, 1)
        try:
            evaluate(body, example)
        except Exception:
            continue
        return example
    return None


def _widen(layer: nn.Linear, head: Head) -> None:
    """Add the head's further columns; the trained ones stay the mean or the logits."""
    outputs, inputs = layer.weight.shape
    extra = head.columns - outputs
    layer.out_features = head.columns
    with torch.no_grad():
        weight = torch.cat([layer.weight, layer.weight.new_zeros(extra, inputs)])
        added = layer.weight.new_tensor(head.start).repeat_interleave(outputs)
        trained = layer.weight.new_zeros(outputs) if layer.bias is None else layer.bias
        bias = torch.cat([trained, added])
    layer.weight = nn.Parameter(weight)
    layer.bias = nn.Parameter(bias)
