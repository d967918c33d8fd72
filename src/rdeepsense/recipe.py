"""The two-step recipe (section 3.1): dropout on every layer, a distribution at the output.

    z ~ Bernoulli(1 - drop_prob),  y = (x * z) W + b                              (equation 2)

z has the length of the layer's INPUT, biases are never dropped, and nothing is dropped after the
output layer, so that mean and variance share the last hidden mask. The paper scales the weights by
the keep probability at test time; here, as in torch, x is divided by it while training, which gives
the same function at test time.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd

from rdeepsense.errors import ConversionError, InputError
from rdeepsense.heads import Head, Params, head_named


def check_drop_prob(value: float, name: str = "drop_prob") -> float:
    """A drop probability: in [0, 1). The paper's p is the keep probability, 1 - drop_prob."""
    if isinstance(value, str | bool) or not 0 <= value < 1:
        raise InputError(
            f"{name} = {value!r} is not in [0, 1); it is the probability to DROP a unit"
        )
    return float(value)


class DropoutLinear(nn.Linear):
    """A Linear layer that drops entries of its input while training: y = (x * z) W + b."""

    drop_prob: float

    @classmethod
    def take(cls, linear: nn.Module, drop_prob: float) -> None:
        """Make a Linear layer one of these, in place, so that it stays where it is registered."""
        linear.__class__ = cls
        linear.drop_prob = drop_prob  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(functional.dropout(x, self.drop_prob, self.training))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, drop_prob={self.drop_prob}"


class StochasticNetwork(nn.Module):
    """A converted network: the user's own forward, then the head.

    In training mode each call draws dropout masks; in evaluation mode it is the single
    deterministic pass of section 3.3.
    """

    def __init__(self, body: nn.Module, head: Head, output: str) -> None:
        super().__init__()
        self.body = body
        self.head = head
        self.output = output

    def forward(self, x: Tensor) -> Params:
        raw = self.body(x)
        if not isinstance(raw, Tensor) or raw.ndim < 1 or raw.shape[-1] != self.head.columns:
            raise ConversionError(
                f"the network's forward must return the {self.head.columns} columns of its output "
                f"layer {self.output!r}, it returned {_describe(raw)}"
            )
        params: Params = self.head(raw)
        return params

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Dropout on, everything else in evaluation mode: for Monte Carlo passes."""
        before = {module: module.training for module in self.modules()}
        self.eval()
        for module in self.modules():
            if isinstance(module, DropoutLinear | _DropoutNd):
                module.training = True
        try:
            yield
        finally:
            for module, training in before.items():
                module.training = training


def convert(
    network: nn.Module,
    likelihood: str = "gaussian",
    drop_prob: float | Sequence[float] = 0.1,
    input_drop_prob: float = 0.0,
    output: str | None = None,
    example: Tensor | None = None,
) -> StochasticNetwork:
    """Turn a network built of Linear layers into a stochastic one with a distribution head.

    Works on a copy and keeps the trained weights, as mean or logits. Every Linear layer but the
    first drops its input with `drop_prob` (one value, or one per such layer); the first, which
    reads the sensors, with `input_drop_prob`. A Dropout module that already stands before a layer
    keeps its place and takes that layer's probability, so that none is stacked on another; one
    after the output layer is switched off. Dropout called as a function is not seen.

    The output layer is `output` by name, or the last Linear layer: in the order of execution when
    an `example` batch of inputs is given, of registration otherwise.
    """
    head_type = head_named(likelihood)
    body = copy.deepcopy(network)
    order = _layers(body, example)
    linear = [name for name, module in order if isinstance(module, nn.Linear)]
    if not linear:
        raise ConversionError(
            f"{type(network).__name__} has no Linear layer to convert; "
            f"its modules: {', '.join(type(m).__name__ for m in network.modules())}"
        )
    if output is None:
        output = linear[-1]
    if output not in linear:
        raise ConversionError(
            f"output = {output!r} is not a Linear layer of the network; it has: {', '.join(linear)}"
        )
    drops = _drop_probs(drop_prob, input_drop_prob, linear.index(output))
    _insert_dropout(order, output, drops)

    layer = body.get_submodule(output)
    assert isinstance(layer, nn.Linear)
    if likelihood == "categorical" and layer.out_features < 2:
        raise ConversionError(
            f"layer {output!r} has 1 output; the categorical likelihood needs one per class"
        )
    head = head_type(layer.out_features)
    _check_returns(body, output, layer, example, order)
    _widen(layer, head)
    device = layer.weight.device
    return StochasticNetwork(body, head.to(device), output).train(network.training)


def _layers(body: nn.Module, example: Tensor | None) -> list[tuple[str, nn.Module]]:
    """Linear and Dropout modules, by execution when there is an example, else by registration."""
    named: list[tuple[str, nn.Module]] = [
        (n, m) for n, m in body.named_modules() if isinstance(m, nn.Linear | _DropoutNd)
    ]
    if example is None:
        return named
    seen: list[nn.Module] = []
    hooks = [m.register_forward_hook(lambda m, _args, _out: seen.append(m)) for _, m in named]
    try:
        _evaluate(body, example)
    finally:
        for hook in hooks:
            hook.remove()
    names = {module: name for name, module in named}
    return [(names[module], module) for module in dict.fromkeys(seen)]


def _evaluate(body: nn.Module, example: Tensor) -> object:
    """One pass in evaluation mode, leaving the mode as it was."""
    training = {module: module.training for module in body.modules()}
    body.eval()
    try:
        with torch.no_grad():
            return body(example)
    finally:
        for module, mode in training.items():
            module.training = mode


def _drop_probs(
    drop_prob: float | Sequence[float], input_drop_prob: float, hidden: int
) -> list[float]:
    """The probability before each Linear layer up to the output: the inputs' first."""
    first = check_drop_prob(input_drop_prob, "input_drop_prob")
    if isinstance(drop_prob, list | tuple):
        if len(drop_prob) != hidden:
            raise InputError(
                f"drop_prob has {len(drop_prob)} values, the network {hidden} layers after the "
                "first; give one value, or one per such layer"
            )
        return [first, *map(check_drop_prob, drop_prob)]
    return [first] + [check_drop_prob(drop_prob)] * hidden  # type: ignore[arg-type]


def _insert_dropout(order: list[tuple[str, nn.Module]], output: str, drops: list[float]) -> None:
    """Give each layer its dropout, in a Dropout that stands there or in the layer itself."""
    position = 0
    pending: _DropoutNd | None = None
    for name, module in order:
        if isinstance(module, _DropoutNd):
            pending = module
            module.p = drops[position] if position < len(drops) else 0.0
            continue
        if position < len(drops):
            own = 0.0 if pending is not None else drops[position]
            if type(module).forward is not nn.Linear.forward:
                raise ConversionError(
                    f"layer {name!r} is a {type(module).__name__} with a forward of its own; "
                    "only plain Linear layers can be converted"
                )
            DropoutLinear.take(module, own)
        # Whatever runs after the output layer is outside of the recipe.
        position = len(drops) if name == output else position + 1
        pending = None


def _check_returns(
    body: nn.Module,
    output: str,
    layer: nn.Linear,
    example: Tensor | None,
    order: list[tuple[str, nn.Module]],
) -> None:
    """Refuse a network whose forward changes the output layer's numbers, or returns others."""
    if example is None:
        example = _guess_example(body, order)
    if example is None:
        return  # the input has another form; every forward call checks the columns
    seen: list[Tensor] = []
    hook = layer.register_forward_hook(lambda _m, _args, out: seen.append(out))
    try:
        returned = _evaluate(body, example)
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
            f"as they are: the layer gave {_describe(seen[-1] if seen else None)}, forward "
            f"returned {_describe(returned)}. Leave out an activation after the last layer (the "
            "head has its own), or name the layer with output= or give example="
        )


def _guess_example(body: nn.Module, order: list[tuple[str, nn.Module]]) -> Tensor | None:
    """A batch that the network takes, as wide as one of its layers, or None."""
    for module in (m for _, m in order if isinstance(m, nn.Linear)):
        example = torch.linspace(-1, 1, module.in_features).to(module.weight).repeat(2, 1)
        try:
            _evaluate(body, example)
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
        trained = layer.weight.new_zeros(outputs) if layer.bias is None else layer.bias
        bias = torch.cat([trained, trained.new_full((extra,), head.start)])
    layer.weight = nn.Parameter(weight)
    layer.bias = nn.Parameter(bias)


def _describe(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "nothing" if value is None else f"a {type(value).__name__}"
