"""Tracing: a PyTorch network as a graph of the nodes that exports know."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from rdeepsense.arrays import Floats, Integers
from rdeepsense.deploy.folded.graph import (
    ACTIVATIONS,
    MOST_AXES,
    Activation,
    Affine,
    Concatenated,
    Convolution,
    Graph,
    Gru,
    Linear,
    Lstm,
    Mean,
    Node,
    Pair,
    Pool,
    Recurrent,
    Spectrum,
    Stream,
    Strided,
    Sum,
    value_sizes,
)
from rdeepsense.dropout.layers import (
    DropoutConv1d,
    DropoutConv2d,
    DropoutEntries,
    DropoutGRU,
    DropoutLinear,
    DropoutLSTM,
)
from rdeepsense.errors import InputError
from rdeepsense.networks.deepsense import FrequencyResponse, RandomRotation, RandomRounding

# --------------------------------------------------------------------------------------------------
# Sizes and strides of a view of another value
# --------------------------------------------------------------------------------------------------


def strided(read: int, index: Integers) -> Strided | None:
    """Return the step that takes these numbers; None where no few strides do.

    The longest run of equal differences is the last axis; what its first numbers are is the same
    question again.
    """
    sizes: list[int] = []
    strides: list[int] = []
    rest = index
    while len(rest) > 1:
        step = int(rest[1] - rest[0])
        breaks = np.flatnonzero(np.diff(rest) != step)
        run = int(breaks[0]) + 1 if len(breaks) else len(rest)
        if len(rest) % run or len(sizes) == MOST_AXES:
            return None
        rows = rest.reshape(-1, run)
        if not (np.diff(rows, axis=1) == step).all():
            return None
        sizes.insert(0, run)
        strides.insert(0, step)
        rest = rows[:, 0]
    if not sizes:
        sizes, strides = [1], [1]
    return Strided((read,), int(index[0]), tuple(sizes), tuple(strides))


# --------------------------------------------------------------------------------------------------
# Recorded steps, and the tensors that they made
# --------------------------------------------------------------------------------------------------

ACCEPTED = (
    "Linear, Conv1d, Conv2d, GRU, LSTM, BatchNorm, ReLU, Sigmoid, Tanh, Dropout, max and mean "
    "pooling, Flatten, and in a forward: transpose, permute, reshape, cat, slices, split, mean, +, "
    "relu, sigmoid, tanh"
)


class Tape:
    """Steps in the order of the pass; a tensor of one row is a value by its numbers in order."""

    def __init__(self, row: Tensor) -> None:
        self.inputs = row.numel()
        self.nodes: list[Node] = []
        self.where = "the network"
        # The tensors are kept, because Python gives the number of a dead one to another.
        self._values: dict[int, tuple[int, Tensor]] = {id(row): (0, row)}

    def knows(self, tensor: Tensor) -> bool:
        return id(tensor) in self._values

    def value(self, tensor: Tensor) -> int:
        """Return the number of the value that a tensor holds."""
        if id(tensor) not in self._values:
            raise self.refusal("it reads a tensor that no exported step makes")
        return self._values[id(tensor)][0]

    def note(self, value: int, tensor: Tensor) -> None:
        """Say that a tensor holds a value."""
        self._values[id(tensor)] = (value, tensor)

    def add(self, node: Node) -> int:
        """Add a step; returns the number of its value."""
        self.nodes.append(node)
        return len(self.nodes)

    def add_moved(self, read: int, index: Tensor, size: int) -> int:
        """Add what takes these numbers of a value, or nothing where it takes all in order."""
        places = index.detach().numpy().ravel().astype(np.int64)
        if len(places) == size and np.array_equal(places, np.arange(size)):
            return read
        if not len(places):
            raise self.refusal("it makes a tensor without numbers")
        found = strided(read, places)
        if found is None:
            raise self.refusal("it takes numbers in an order that is no slice or transpose")
        return self.add(found)

    def size(self, value: int) -> int:
        return value_sizes(self.inputs, tuple(self.nodes))[value] if value else self.inputs

    def refusal(self, why: str) -> InputError:
        """Make the error that names the layer."""
        return InputError(f"{self.where} cannot be exported: {why}; accepted: {ACCEPTED}")


def floats(tensor: Tensor) -> Floats:
    """Copy weights in float64."""
    found: Floats = tensor.detach().cpu().to(torch.float64).numpy().copy()
    return found


# --------------------------------------------------------------------------------------------------
# Recurrent layers of torch as steps
# --------------------------------------------------------------------------------------------------


# Any: out is (states, last) of a GRU, (states, (last, cells)) of an LSTM.
def recurrent(tape: Tape, layer: nn.GRU | nn.LSTM, given: tuple[Any, ...], out: Any) -> None:
    """Add a stack of layers, each reading all states of the one before it."""
    if getattr(layer, "proj_size", 0):
        raise tape.refusal(f"proj_size={layer.proj_size}")
    for start in _tensors(given[1:]):
        if tape.knows(start) or bool(start.any()):
            raise tape.refusal("it begins with states that are not zero")
    n, steps = layer.hidden_size, given[0].shape[int(layer.batch_first and given[0].ndim == 3)]
    value, ends = tape.value(given[0]), []
    weights = list(layer.all_weights)
    for _ in range(layer.num_layers):
        forwards = _direction(tape, layer, value, weights.pop(0))
        ends.append(tape.add(Strided((forwards,), n * (steps - 1), (n,), (1,))))
        if not layer.bidirectional:
            value = forwards
            continue
        backwards = _direction(tape, layer, value, weights.pop(0), steps)
        ends.append(tape.add(Strided((backwards,), 0, (n,), (1,))))
        both = tape.add(Concatenated((forwards, backwards)))
        value = tape.add(Strided((both,), 0, (steps, 2, n), (n, steps * n, 1)))
    states, last = out
    tape.note(value, states)
    # The cells of an LSTM are no step's value: what reads them is refused.
    whole = ends[0] if len(ends) == 1 else tape.add(Concatenated(tuple(ends)))
    tape.note(whole, last if isinstance(last, Tensor) else last[0])


def _direction(
    tape: Tape,
    layer: nn.GRU | nn.LSTM,
    value: int,
    weights: Sequence[Tensor],
    turned: int = 0,
) -> int:
    """Add one layer in one direction; with `turned` steps it reads them from the last on."""
    w_x, w_h = (floats(weight) for weight in weights[:2])
    zeros = np.zeros(len(w_x))
    b_x, b_h = (floats(b) for b in weights[2:]) if layer.bias else (zeros, zeros)
    value = tape.add(Linear((value,), False, w_x, b_x))
    if turned:
        value = tape.add(_turned(value, turned, len(w_x)))
    kind = Gru if isinstance(layer, nn.GRU) else Lstm
    value = tape.add(kind((value,), w_h, b_h))
    return tape.add(_turned(value, turned, layer.hidden_size)) if turned else value


def _turned(value: int, steps: int, width: int) -> Strided:
    return Strided((value,), (steps - 1) * width, (steps, width), (-width, 1))


def _tensors(given: tuple[Any, ...]) -> list[Tensor]:
    """List the tensors among arguments."""
    found: list[Tensor] = []
    for one in given:
        found += _tensors(tuple(one)) if isinstance(one, tuple | list) else []
        found += [one] if isinstance(one, torch.Tensor) else []
    return found


# --------------------------------------------------------------------------------------------------
# Other layers of torch as steps
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Functions called by a forward, as steps
#
# Functions that only move numbers are run a second time on the numbers' places, which tells what
# they move where, whatever their arguments.
# --------------------------------------------------------------------------------------------------

MOVING = frozenset(
    ("transpose", "permute", "flatten", "reshape", "view", "unflatten", "unsqueeze", "squeeze",
     "movedim", "moveaxis", "swapaxes", "swapdims", "__getitem__", "split", "chunk", "unbind",
     "select", "narrow", "cat", "concat", "stack", "contiguous", "clone", "flip", "expand",
     "expand_as", "tensor_split", "detach", "t", "ravel", "__get__")
)  # fmt: skip
SAME = frozenset(("dropout", "to", "float", "double", "requires_grad_"))
READING = frozenset(("item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__"))
ADDING = frozenset(("add", "__add__", "__radd__", "__iadd__"))

# Any: arguments and results of torch's functions are of all kinds.
Arguments = tuple[Any, ...]


def record(
    tape: Tape, function: Callable[..., Any], given: Arguments, named: dict[str, Any], out: Any
) -> None:
    """Add what a function did; refuse one that is not known."""
    name = function.__name__
    tensors = list(_tensors_in((given, named)))
    if not any(map(tape.knows, tensors)):
        return  # of constants alone
    if name in READING:
        raise tape.refusal(f"its forward reads numbers of a row into Python ({name})")
    results = list(_tensors_in(out))
    if not results:
        return  # shapes and the like
    if name in MOVING:
        _moved(tape, function, given, named, results)
    elif name in SAME:
        tape.note(tape.value(tensors[0]), results[0])
    elif name.rstrip("_") in ACTIVATIONS:
        tape.note(tape.add(Activation((tape.value(tensors[0]),), name.rstrip("_"))), results[0])
    elif name == "mean":
        _mean(tape, tensors[0], _dims(given[1:], named), results[0])
    elif name in ADDING and len(tensors) == 2 and tensors[0].shape == tensors[1].shape:
        tape.note(tape.add(Sum((tape.value(tensors[0]), tape.value(tensors[1])))), results[0])
    else:
        raise tape.refusal(f"its forward calls {name}")


def _moved(
    tape: Tape,
    function: Callable[..., Any],
    given: Arguments,
    named: dict[str, Any],
    results: list[Tensor],
) -> None:
    """Find out where each number comes from."""
    sources: dict[int, int] = {}  # the value of each tensor read, and where it begins
    total = 0

    def places(tensor: Tensor) -> Tensor:
        nonlocal total
        value = tape.value(tensor)
        if value not in sources:
            sources[value] = total
            total += tensor.numel()
        start = sources[value]
        return torch.arange(start, start + tensor.numel()).reshape(tensor.shape)

    found = list(_tensors_in(function(*_mapped(given, places), **_mapped(named, places))))
    whole = None
    for place, result in zip(found, results, strict=True):
        for value, start in sources.items():
            size = tape.size(value)
            if bool(((place >= start) & (place < start + size)).all()):
                tape.note(tape.add_moved(value, place - start, size), result)
                break
        else:
            whole = tape.add(Concatenated(tuple(sources))) if whole is None else whole
            tape.note(tape.add_moved(whole, place, total), result)


def _mean(tape: Tape, x: Tensor, dims: list[int] | None, out: Tensor) -> None:
    value, shape = tape.value(x), list(x.shape)
    axes = range(x.ndim) if dims is None else sorted({d % x.ndim for d in dims})
    for axis in reversed(axes):
        count, inner = shape[axis], prod(shape[axis + 1 :])
        if count > 1:
            value = tape.add(Mean((value,), count, inner))
        shape[axis] = 1
    tape.note(value, out)


def _dims(given: Arguments, named: dict[str, Any]) -> list[int] | None:
    """Return the axes that `mean` was given."""
    dims = named.get("dim", named.get("axis", given[0] if given else None))
    if dims is None:
        return None
    return [dims] if isinstance(dims, int) else list(dims)


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors_in(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors_in(one)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change the tensors among arguments."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(one, change) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_mapped(one, change) for one in value)
    return value


# --------------------------------------------------------------------------------------------------
# Simplification: batch norms into weights, ReLU into the step before
# --------------------------------------------------------------------------------------------------


def simplified(nodes: tuple[Node, ...], result: int) -> tuple[Node, ...]:
    """Join steps, and leave out those that nothing reads; the result is the last."""
    nodes = _used(nodes, result)
    while True:
        readers = Counter(read for node in nodes for read in node.reads)
        for k, node in enumerate(nodes):
            before = node.reads[0] - 1
            if before < 0 or readers[node.reads[0]] != 1:
                continue
            joined = _joined(nodes[before], node)
            if joined is not None:
                changed = [*nodes]
                changed[k] = joined
                nodes = _used(tuple(changed), len(nodes))
                break
        else:
            return nodes


def _joined(first: Node, second: Node) -> Node | None:
    """Return one step in place of two, where there is one."""
    if not isinstance(first, Linear | Convolution | Affine) or first.relu:
        return None
    if isinstance(second, Activation) and second.name == "relu":
        return replace(first, relu=True)
    if isinstance(second, Affine) and isinstance(first, Convolution):
        weight = first.weight * second.scale[:, None, None, None]
        bias = first.bias * second.scale + second.shift
        return replace(first, weight=weight, bias=bias, relu=second.relu)
    return None


def _used(nodes: tuple[Node, ...], result: int) -> tuple[Node, ...]:
    """Leave out what does not lead to the result, and number the values anew."""
    needed = {result}
    for k in range(len(nodes), 0, -1):
        if k in needed:
            needed |= set(nodes[k - 1].reads)
    number = {0: 0}
    kept: list[Node] = []
    for k, node in enumerate(nodes, 1):
        if k in needed:
            kept.append(replace(node, reads=tuple(number[read] for read in node.reads)))
            number[k] = len(kept)
    return tuple(kept)


# --------------------------------------------------------------------------------------------------
# Tracing of a network on one row
# --------------------------------------------------------------------------------------------------


def trace(body: nn.Module, shape: tuple[int, ...]) -> tuple[Node, ...]:
    """Return the steps that a network takes of a scaled row of this shape.

    It runs a copy in evaluation mode, where dropout is its expectation.
    """
    body = copy.deepcopy(body).cpu().double().eval()
    generator = torch.Generator().manual_seed(0)
    row = torch.randn(1, *shape, generator=generator, dtype=torch.float64)
    tape = Tape(row)
    recorder = _Recorder(tape)
    for name, module in body.named_modules():
        module.forward = partial(recorder.layer, name, module, module.forward, rule_for(module))
    with torch.no_grad(), recorder:
        out = body(row)
    tape.where = "the network"
    return simplified(tuple(tape.nodes), tape.value(out))


class _Recorder(TorchFunctionMode):
    """Hands what runs to the tape; inside of a layer that has a rule nothing is noted."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape, self.inside = tape, 0

    # Any: whatever torch's functions take and return.
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if not self.inside:
            record(self.tape, func, args, kwargs or {}, out)
        return out

    def layer(
        self,
        name: str,
        module: nn.Module,
        forward: Callable[..., Any],
        rule: Rule | None,
        *given: Any,
        **named: Any,
    ) -> Any:
        """Run a layer, and add its steps."""
        if self.inside:
            return forward(*given, **named)
        before = self.tape.where
        kind = type(module).__name__
        self.tape.where = f"layer {name!r} ({kind})" if name else kind
        if rule is None:
            out = forward(*given, **named)
        else:
            self.inside += 1
            try:
                out = forward(*given, **named)
            finally:
                self.inside -= 1
            rule(self.tape, module, (*given, *named.values()), out)
        self.tape.where = before
        return out


# --------------------------------------------------------------------------------------------------
# Computation by interval: whether and how a network of windows allows it
#
# The network is traced a second time on a window of one interval: where what its first recurrent
# layer reads is, interval by interval, what it reads of a whole window, the two are one.
# --------------------------------------------------------------------------------------------------

ROWS = 4
AGREEMENT = 1e-9  # of the largest column


def stream_of(body: nn.Module, graph: Graph) -> Stream | None:
    """Cut a network's graph; None where it cannot be."""
    first = graph.nodes[0]
    if not isinstance(first, Spectrum) or len(graph.shape) != 2:
        return None
    length, channels = graph.shape
    count = length // first.interval
    try:
        short = trace(body, (first.interval, channels))
    except (InputError, RuntimeError):
        return None
    at, cut = _first_recurrent(short), _first_recurrent(graph.nodes)
    if count < 2 or at is None or cut is None:
        return None
    interval = simplified(short[:at], short[at].reads[0])
    rest = graph.nodes[cut:]
    if not _follow(rest, graph.nodes[cut].reads[0], cut):
        return None
    end = next((k for k, n in enumerate(rest) if not isinstance(n, Recurrent | Linear)), len(rest))
    if end == len(rest) or not _pools(rest[end], graph.sizes[cut + end], count):
        return None
    found = Stream(
        first.interval * channels,
        count,
        interval,
        _chained(rest[:end]),
        _chained(rest[end + 1 :]),
        isinstance(rest[end], Mean),
    )
    return found if found.last and _agrees(found, graph) else None


def _first_recurrent(nodes: tuple[Node, ...]) -> int | None:
    return next((k for k, node in enumerate(nodes) if isinstance(node, Recurrent)), None)


def _follow(rest: tuple[Node, ...], read: int, first: int) -> bool:
    """Tell whether each step reads the one before it alone."""
    wanted = [(read,), *((first + k,) for k in range(1, len(rest)))]
    return [node.reads for node in rest] == wanted


def _pools(node: Node, size: int, count: int) -> bool:
    """Tell whether a step takes the mean over all intervals, or the last one."""
    each = size // count
    if isinstance(node, Mean):
        return (node.count, node.inner) == (count, each)
    last = (each * (count - 1), (each,), (1,))
    return isinstance(node, Strided) and (node.offset, node.sizes, node.strides) == last


def _chained(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(replace(node, reads=(k,)) for k, node in enumerate(nodes))


def _agrees(stream: Stream, graph: Graph) -> bool:
    z = np.random.default_rng(0).normal(size=(ROWS, graph.inputs))
    wanted = graph.computed(z)
    try:
        found = stream.raw(stream.found(z))
    except (InputError, ValueError):
        return False
    return bool(np.abs(found - wanted).max() <= AGREEMENT * np.abs(wanted).max())
