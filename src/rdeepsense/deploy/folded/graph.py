"""A folded network of windows: a graph of nodes, evaluated with numpy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats, Integers
from rdeepsense.deploy.folded.model import (
    Facts,
    MeanStd,
    Output,
    Outputs,
    VarianceReduction,
    guarded,
)
from rdeepsense.errors import InputError
from rdeepsense.guard import REACH
from rdeepsense.modelfile.schema import FLAG, Kind, choice, several, whole

# --------------------------------------------------------------------------------------------------
# The interface of the steps of a graph
#
# A value is a flat vector of numbers for each row; what its axes are, a step knows that reads it.
# --------------------------------------------------------------------------------------------------

MOST_NUMBERS = 1 << 22  # of one value, so that a file cannot ask for more memory than that
COUNT = whole(1, MOST_NUMBERS)
PLACE = whole(0, MOST_NUMBERS)


@dataclass(frozen=True)
class Node(ABC):
    """A step; `reads` are the numbers of values, of which 0 is the row itself."""

    reads: tuple[int, ...]

    kind: ClassVar[str]
    fields: ClassVar[Mapping[str, Kind]] = {}  # beside the arrays, as a file's JSON holds them
    arrays: ClassVar[Mapping[str, int]] = {}  # their numbers of axes

    @abstractmethod
    def size(self, *sizes: int) -> int:
        """Return how many numbers come out; refuse what does not fit what is read."""

    @abstractmethod
    def run(self, *values: Floats) -> Floats:
        """Compute (rows, size) of what is read, (rows, sizes)."""

    def multiply_adds(self, *sizes: int) -> int:
        """Count those of one row."""
        return 0

    def need(self, fits: bool, what: str) -> None:
        """Refuse a step that does not fit."""
        if not fits:
            raise InputError(f"a step {self.kind!r} does not fit: {what}")


# --------------------------------------------------------------------------------------------------
# Elementwise steps and reductions
# --------------------------------------------------------------------------------------------------

ACTIVATIONS = ("relu", "sigmoid", "tanh")


def sigmoid(x: Floats) -> Floats:
    """Compute 1 / (1 + e^-x) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


@dataclass(frozen=True)
class Activation(Node):
    """max(0, x), 1 / (1 + e^-x) or tanh x."""

    name: str

    kind: ClassVar[str] = "activation"
    fields: ClassVar = {"name": choice(*ACTIVATIONS)}

    def size(self, *sizes: int) -> int:
        return sizes[0]

    def run(self, *values: Floats) -> Floats:
        (x,) = values
        if self.name == "sigmoid":
            return sigmoid(x)
        found: Floats = np.maximum(x, 0.0) if self.name == "relu" else np.tanh(x)
        return found


@dataclass(frozen=True)
class Sum(Node):
    """x + y."""

    kind: ClassVar[str] = "sum"

    def size(self, *sizes: int) -> int:
        self.need(len(sizes) == 2 and sizes[0] == sizes[1], f"it adds {sizes}")
        return sizes[0]

    def run(self, *values: Floats) -> Floats:
        return values[0] + values[1]


@dataclass(frozen=True)
class Affine(Node):
    """y_ci = scale_c x_ci + shift_c, with `relu` its positive part: a batch norm by itself."""

    relu: bool
    scale: Floats
    shift: Floats

    kind: ClassVar[str] = "affine"
    fields: ClassVar = {"relu": FLAG}
    arrays: ClassVar = {"scale": 1, "shift": 1}

    def size(self, *sizes: int) -> int:
        channels = len(self.scale)
        fits = channels == len(self.shift) and sizes[0] % channels == 0
        self.need(fits, f"{channels} channels of {sizes[0]} numbers")
        return sizes[0]

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), len(self.scale), -1)
        found = (x * self.scale[:, None] + self.shift[:, None]).reshape(len(x), -1)
        return np.maximum(found, 0.0) if self.relu else found

    def multiply_adds(self, *sizes: int) -> int:
        return sizes[0]


@dataclass(frozen=True)
class Mean(Node):
    """y_oi = mean_k x_oki, of `count` numbers that lie `inner` apart."""

    count: int
    inner: int

    kind: ClassVar[str] = "mean"
    fields: ClassVar = {"count": COUNT, "inner": COUNT}

    def size(self, *sizes: int) -> int:
        self.need(sizes[0] % (self.count * self.inner) == 0, f"of {sizes[0]} numbers")
        return sizes[0] // self.count

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), -1, self.count, self.inner)
        found: Floats = x.mean(2).reshape(len(x), -1)
        return found

    def multiply_adds(self, *sizes: int) -> int:
        return sizes[0]


# --------------------------------------------------------------------------------------------------
# Steps that rearrange or join values
# --------------------------------------------------------------------------------------------------

MOST_AXES = 6


@dataclass(frozen=True)
class Strided(Node):
    """y[i, j, ..] = x[offset + i strides_0 + j strides_1 + ..]: slices, transposes, repeats."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    kind: ClassVar[str] = "strided"
    fields: ClassVar = {
        "offset": PLACE,
        "sizes": several(COUNT, MOST_AXES, least=1),
        "strides": several(whole(-MOST_NUMBERS, MOST_NUMBERS), MOST_AXES, least=1),
    }

    @property
    def is_run(self) -> bool:
        """Whether it is one stretch of what it reads."""
        return self.strides == (1,)

    def size(self, *sizes: int) -> int:
        self.need(len(self.sizes) == len(self.strides), "as many sizes as strides")
        reach = [(n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True)]
        low = self.offset + sum(min(r, 0) for r in reach)
        high = self.offset + sum(max(r, 0) for r in reach)
        self.need(0 <= low <= high < sizes[0], f"it reads {low} to {high} of {sizes[0]} numbers")
        return prod(self.sizes)

    @cached_property
    def index(self) -> Integers:
        """Which numbers it reads, in its order."""
        found = np.array(self.offset)
        for n, stride in zip(self.sizes, self.strides, strict=True):
            found = found[..., None] + stride * np.arange(n)
        return found.ravel()

    def run(self, *values: Floats) -> Floats:
        return values[0][:, self.index]


@dataclass(frozen=True)
class Concatenated(Node):
    """Values one after the other."""

    kind: ClassVar[str] = "concatenated"

    def size(self, *sizes: int) -> int:
        return sum(sizes)

    def run(self, *values: Floats) -> Floats:
        return np.concatenate(values, axis=1)


# --------------------------------------------------------------------------------------------------
# Frequency response of short intervals, as `networks.deepsense` computes it
# --------------------------------------------------------------------------------------------------

QUIET = 0.5e-3
LONGEST = 1 << 12


@dataclass(frozen=True)
class Spectrum(Node):
    """(time, channels) -> (channels, terms, intervals): X_0, log(sqrt(|X_f|^2 + q^2) + q)."""

    interval: int
    channels: int

    kind: ClassVar[str] = "spectrum"
    fields: ClassVar = {"interval": whole(1, LONGEST), "channels": COUNT}

    @property
    def terms(self) -> int:
        return self.interval // 2 + 1

    @cached_property
    def waves(self) -> tuple[Floats, Floats]:
        """Cosines and sines (interval, terms) over the interval, in the layer's float32."""
        n = self.interval
        angles = np.outer(np.arange(n), np.arange(self.terms)) % n * (2 * np.pi / n)
        cosines, sines = np.cos(angles) / n, np.sin(angles) / n
        return (
            cosines.astype(np.float32).astype(np.float64),
            sines.astype(np.float32).astype(np.float64),
        )

    def size(self, *sizes: int) -> int:
        each = self.interval * self.channels
        self.need(sizes[0] % each == 0, f"intervals of {each} of {sizes[0]} numbers")
        return sizes[0] // each * self.channels * self.terms

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), -1, self.interval, self.channels)
        parts = x.transpose(0, 3, 1, 2)
        real, imaginary = (parts @ wave for wave in self.waves)
        power = real[..., 1:] ** 2 + imaginary[..., 1:] ** 2
        response = np.log(np.sqrt(power + QUIET**2) + QUIET)
        found = np.concatenate([real[..., :1], response], -1).transpose(0, 1, 3, 2)
        return found.reshape(len(x), -1)

    def multiply_adds(self, *sizes: int) -> int:
        return 2 * sizes[0] * self.terms


# --------------------------------------------------------------------------------------------------
# Linear layers and convolutions, with batch norms folded in
# --------------------------------------------------------------------------------------------------

PAIR = several(COUNT, 2, least=2)
Pair = tuple[int, int]


@dataclass(frozen=True)
class Linear(Node):
    """y = W x + b of each stretch of x, with `relu` its positive part."""

    relu: bool
    weight: Floats  # (outputs, inputs)
    bias: Floats

    kind: ClassVar[str] = "linear"
    fields: ClassVar = {"relu": FLAG}
    arrays: ClassVar = {"weight": 2, "bias": 1}

    def size(self, *sizes: int) -> int:
        outputs, inputs = map(int, self.weight.shape)
        fits = sizes[0] % inputs == 0 and len(self.bias) == outputs
        self.need(fits, f"{inputs} inputs and {outputs} outputs, of {sizes[0]} numbers")
        return sizes[0] // inputs * outputs

    def run(self, *values: Floats) -> Floats:
        x = values[0].reshape(len(values[0]), -1, self.weight.shape[1])
        found = (x @ self.weight.T + self.bias).reshape(len(x), -1)
        return np.maximum(found, 0.0) if self.relu else found

    def multiply_adds(self, *sizes: int) -> int:
        return sizes[0] * len(self.weight)


@dataclass(frozen=True)
class Window(Node):
    """What a step reads that slides over (channels, height, width): its places and their number."""

    height: int
    width: int
    stride: Pair

    fields: ClassVar = {"height": COUNT, "width": COUNT, "stride": PAIR}

    def places(self, reach: Pair, padding: Pair = (0, 0)) -> Pair:
        """Count the places of a kernel that reaches over so many numbers."""
        high, wide = (
            (n + 2 * p - r) // s + 1
            for n, p, r, s in zip(
                (self.height, self.width), padding, reach, self.stride, strict=True
            )
        )
        self.need(min(high, wide) > 0, f"a kernel of {reach} over {self.height} x {self.width}")
        return high, wide


@dataclass(frozen=True)
class Convolution(Window):
    """y_o = b_o + sum over channels and taps, zeros around; with `relu` its positive part.

    Of one axis the height is 1. A batch norm after it is inside W and b.
    """

    padding: Pair
    dilation: Pair
    groups: int
    relu: bool
    weight: Floats  # (outputs, inputs of a group, height, width)
    bias: Floats

    kind: ClassVar[str] = "convolution"
    fields: ClassVar = {
        **Window.fields,
        "padding": several(PLACE, 2, least=2),
        "dilation": PAIR,
        "groups": COUNT,
        "relu": FLAG,
    }
    arrays: ClassVar = {"weight": 4, "bias": 1}

    @property
    def channels(self) -> int:
        return int(self.weight.shape[1]) * self.groups

    def out(self) -> Pair:
        """Return height and width of what comes out."""
        high, wide = (
            (k - 1) * d + 1 for k, d in zip(self.weight.shape[2:], self.dilation, strict=True)
        )
        return self.places((high, wide), self.padding)

    def size(self, *sizes: int) -> int:
        outputs = len(self.weight)
        fits = outputs % self.groups == 0 and len(self.bias) == outputs
        fits = fits and self.channels * self.height * self.width == sizes[0]
        self.need(fits, f"weights of {self.weight.shape} in {self.groups} groups, of {sizes[0]}")
        (p, q), (high, wide) = self.padding, self.out()
        padded = self.channels * (self.height + 2 * p) * (self.width + 2 * q)
        self.need(padded <= MOST_NUMBERS, f"with a padding of {self.padding}")
        return outputs * high * wide

    def run(self, *values: Floats) -> Floats:
        rows, (high, wide) = len(values[0]), self.out()
        x = values[0].reshape(rows, self.channels, self.height, self.width)
        (p, q), (s, t), (d, e) = self.padding, self.stride, self.dilation
        x = np.pad(x, ((0, 0), (0, 0), (p, p), (q, q)))
        split = x.reshape(rows, self.groups, -1, *x.shape[2:])
        weight = self.weight.reshape(self.groups, -1, *self.weight.shape[1:])
        found = np.zeros((rows, self.groups, weight.shape[1], high * wide))
        for i in range(weight.shape[3]):
            for j in range(weight.shape[4]):
                tap = split[..., i * d : i * d + (high - 1) * s + 1 : s, :]
                tap = tap[..., j * e : j * e + (wide - 1) * t + 1 : t]
                found += weight[..., i, j] @ tap.reshape(*tap.shape[:3], -1)
        raw = found.reshape(rows, len(self.bias), -1) + self.bias[:, None]
        flat: Floats = raw.reshape(rows, -1)
        return np.maximum(flat, 0.0) if self.relu else flat

    def multiply_adds(self, *sizes: int) -> int:
        high, wide = self.out()
        return self.weight.size * high * wide


@dataclass(frozen=True)
class Pool(Window):
    """The maximum or the mean over each place of a kernel, channel by channel."""

    kernel: Pair
    name: str

    kind: ClassVar[str] = "pool"
    fields: ClassVar = {**Window.fields, "kernel": PAIR, "name": choice("max", "mean")}

    def size(self, *sizes: int) -> int:
        plane = self.height * self.width
        self.need(sizes[0] % plane == 0, f"planes of {plane} of {sizes[0]} numbers")
        high, wide = self.places(self.kernel)
        found = sizes[0] // plane * high * wide
        self.need(found * prod(self.kernel) <= MOST_NUMBERS, f"a kernel of {self.kernel}")
        return found

    def run(self, *values: Floats) -> Floats:
        (high, wide), (s, t) = self.places(self.kernel), self.stride
        x = values[0].reshape(len(values[0]), -1, self.height, self.width)
        taps = np.stack(
            [
                x[:, :, i : i + (high - 1) * s + 1 : s, j : j + (wide - 1) * t + 1 : t]
                for i in range(self.kernel[0])
                for j in range(self.kernel[1])
            ]
        )
        found: Floats = taps.max(0) if self.name == "max" else taps.mean(0)
        return found.reshape(len(x), -1)


# --------------------------------------------------------------------------------------------------
# Recurrent layers
#
#     GRU    r, u = sigmoid(x_t + U h + b),   n = tanh(x_t + r (U h + b)),   h' = n + u (h - n)
#     LSTM   i, f, g, o = x_t + U h,   c' = sigmoid(f) c + sigmoid(i) tanh(g),
#            h' = sigmoid(o) tanh(c')
#
# x_t are products of the inputs with their weights already, from a Linear step: they do not depend
# on the state, so a stream computes them once.
# --------------------------------------------------------------------------------------------------

LONGEST_SEQUENCE = 1 << 14  # steps


@dataclass(frozen=True)
class Recurrent(Node):
    """U (gates states, states) and b, one layer; all its states come out."""

    weight: Floats
    bias: Floats

    arrays: ClassVar = {"weight": 2, "bias": 1}
    gates: ClassVar[int]

    @property
    def states(self) -> int:
        return int(self.weight.shape[1])

    def size(self, *sizes: int) -> int:
        columns = self.gates * self.states
        fits = self.weight.shape[0] == len(self.bias) == columns and sizes[0] % columns == 0
        self.need(fits, f"weights of {self.weight.shape} for steps of {sizes[0]} numbers")
        self.need(sizes[0] // columns <= LONGEST_SEQUENCE, f"{sizes[0] // columns} steps")
        return sizes[0] // self.gates

    def multiply_adds(self, *sizes: int) -> int:
        return sizes[0] * self.states

    def run(self, *values: Floats) -> Floats:
        rows = len(values[0])
        x = values[0].reshape(rows, -1, self.gates * self.states)
        h = carried = np.zeros((rows, self.states))
        found = np.empty((rows, x.shape[1], self.states))
        for t in range(x.shape[1]):
            h, carried = self.step(x[:, t], h, carried)
            found[:, t] = h
        return found.reshape(rows, -1)

    def products(self, h: Floats) -> Floats:
        """Compute U h + b of states, (rows, states)."""
        return h @ self.weight.T + self.bias

    @abstractmethod
    def step(self, x: Floats, h: Floats, carried: Floats) -> tuple[Floats, Floats]:
        """Return the next state, and what else is carried on."""


@dataclass(frozen=True)
class Gru(Recurrent):
    kind: ClassVar[str] = "gru"
    gates: ClassVar[int] = 3

    def step(self, x: Floats, h: Floats, carried: Floats) -> tuple[Floats, Floats]:
        n = self.states
        sums = self.products(h)
        gates = sigmoid(x[:, : 2 * n] + sums[:, : 2 * n])
        new = np.tanh(x[:, 2 * n :] + gates[:, :n] * sums[:, 2 * n :])
        return new + gates[:, n:] * (h - new), carried


@dataclass(frozen=True)
class Lstm(Recurrent):
    kind: ClassVar[str] = "lstm"
    gates: ClassVar[int] = 4

    def step(self, x: Floats, h: Floats, carried: Floats) -> tuple[Floats, Floats]:
        i, f, g, o = np.split(x + self.products(h), 4, axis=1)
        carried = sigmoid(f) * carried + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(carried), carried


# --------------------------------------------------------------------------------------------------
# A network of windows as a sequence of steps
#
# z = (x - centre) / scale by channel, 0 where x is missing and at most REACH;
# then step k makes value k + 1 of the values that it reads, and the last one is raw
# --------------------------------------------------------------------------------------------------

MOST_STEPS = 1_000
NUMBERS = 1 << 22  # that the values of the rows computed at once may have
MOST_IN_ALL = 1 << 24  # of the values of one row


@dataclass(frozen=True)
class Graph:
    """A network that takes raw sensor units; `shape` is that of a row, channels last."""

    shape: tuple[int, ...]
    centre: Floats
    scale: Floats
    nodes: tuple[Node, ...]

    @property
    def inputs(self) -> int:
        """The numbers of a row."""
        return prod(self.shape)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each value has; refuses steps that do not fit."""
        return value_sizes(self.inputs, self.nodes)

    @property
    def columns(self) -> int:
        return self.sizes[-1]

    @property
    def multiply_adds(self) -> int:
        """Of one pass."""
        return sum(self.costs)

    @property
    def costs(self) -> tuple[int, ...]:
        """The multiply-adds of each step."""
        return tuple(
            node.multiply_adds(*(self.sizes[k] for k in node.reads)) for node in self.nodes
        )

    def rows_at(self, z: Floats) -> Floats:
        """Return rows whose numbers lie so many scales from the centre."""
        found: Floats = self.centre + z.reshape(len(z), *self.shape) * self.scale
        return found

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute the columns of the last layer, some rows at a time."""
        each = max(1, NUMBERS // sum(self.sizes))
        parts = [self.computed(self.read(X[k : k + each])) for k in range(0, len(X), each)]
        return np.concatenate(parts) if parts else np.empty((0, self.columns))

    def read(self, X: NDArray[Any]) -> Floats:
        """Scale rows, (rows, inputs)."""
        with np.errstate(over="ignore"):
            z = np.nan_to_num((X.astype(np.float64) - self.centre) / self.scale)
        found: Floats = np.clip(z, -REACH, REACH).reshape(len(X), -1)
        return found

    def computed(self, z: Floats, upto: int | None = None) -> Floats:
        """Compute the last value, or that of a number, of scaled rows."""
        upto = len(self.nodes) if upto is None else upto
        values: dict[int, Floats] = {0: z}
        last = last_reads(self.nodes[:upto])
        for k, node in enumerate(self.nodes[:upto]):
            values[k + 1] = node.run(*(values[read] for read in node.reads))
            for read in set(node.reads):
                if last[read] == k and read != upto:
                    del values[read]
        return values[upto]


def value_sizes(inputs: int, nodes: tuple[Node, ...]) -> tuple[int, ...]:
    """Return how many numbers each value has, or refuse the first step that does not fit."""
    if not 0 < len(nodes) <= MOST_STEPS:
        raise InputError(f"a graph of {len(nodes)} steps; accepted: 1 to {MOST_STEPS}")
    sizes = [inputs]
    for k, node in enumerate(nodes):
        if not node.reads or not all(0 <= read <= k for read in node.reads):
            raise InputError(f"step {k} reads {node.reads}, which are no values before it")
        sizes.append(node.size(*(sizes[read] for read in node.reads)))
        if not 0 < sizes[-1] <= MOST_NUMBERS:
            raise InputError(f"step {k} makes {sizes[-1]} numbers; at most {MOST_NUMBERS}")
    if sum(sizes) > MOST_IN_ALL:
        raise InputError(f"all steps make {sum(sizes)} numbers; at most {MOST_IN_ALL}")
    return tuple(sizes)


def last_reads(nodes: tuple[Node, ...]) -> dict[int, int]:
    """Return for each value that is read the last step that does."""
    return {read: k for k, node in enumerate(nodes) for read in node.reads}


# --------------------------------------------------------------------------------------------------
# The last layer of a graph, and its inputs
# --------------------------------------------------------------------------------------------------


def last_layer(graph: Graph) -> Linear:
    """Return the last step, which must be a layer that reads the last hidden numbers at once."""
    node = graph.nodes[-1]
    if not isinstance(node, Linear) or graph.sizes[node.reads[0]] != node.weight.shape[1]:
        raise InputError(
            f"the network ends in a step of kind {node.kind!r}, not in one Linear layer; what it "
            "learns from labels is the last layer's"
        )
    return node


def last_hidden(graph: Graph, X: NDArray[Any]) -> Floats:
    """Compute what the last layer reads of rows, (rows, hidden)."""
    return graph.computed(graph.read(X), last_layer(graph).reads[0])


# --------------------------------------------------------------------------------------------------
# Division of a graph into parts by interval, step and end
#
#     f_t = interval(x_t),    top_t, states = step(f_t, states),    raw = last(mean or last of top)
#
# From a state of zeros over all intervals of a window this is the graph itself. A stream keeps f_t,
# or goes on with the states.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    """Steps of an interval of `read` numbers, of a recurrent step, and of what is pooled."""

    read: int
    count: int  # intervals of a window
    interval: tuple[Node, ...]
    step: tuple[Node, ...]  # each reads the one before it
    last: tuple[Node, ...]
    mean: bool  # over the intervals; otherwise the last one counts

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """How many numbers f_t, top_t and raw have."""
        found = value_sizes(self.read, self.interval)[-1]
        top = value_sizes(found, self.step)[-1]
        return found, top, value_sizes(top, self.last)[-1]

    def found(self, z: Floats) -> Floats:
        """Compute f_t of scaled windows, (rows, count, numbers)."""
        return self.found_of(z.reshape(-1, self.read)).reshape(len(z), self.count, -1)

    def found_of(self, intervals: Floats) -> Floats:
        """Compute f_t of scaled intervals, (intervals, numbers)."""
        return run_steps(self.interval, intervals)

    def raw(self, found: Floats) -> Floats:
        """Compute columns from f_t, (rows, any number, numbers): the last `count` are pooled."""
        return self.last_of(self.tops(found))

    def tops(self, found: Floats) -> Floats:
        """Compute top_t from f_t, beginning with states of 0."""
        rows, count = found.shape[:2]
        return run_steps(self.step, found.reshape(rows, -1)).reshape(rows, count, -1)

    def last_of(self, tops: Floats) -> Floats:
        """Compute columns from top_t: the last `count` are pooled."""
        return run_steps(self.last, tops[:, -self.count :].mean(1) if self.mean else tops[:, -1])

    @property
    def multiply_adds(self) -> tuple[int, int, int]:
        """Count those of an interval, a step, and the end."""
        found, top, _ = self.sizes
        pooling = top * self.count if self.mean else 0
        costs = (_cost(self.read, self.interval), _cost(found, self.step), _cost(top, self.last))
        return costs[0], costs[1], costs[2] + pooling

    @property
    def states(self) -> int:
        """How many numbers recurrent layers carry on."""
        return sum(state_size(node) for node in self.step)


def state_size(node: Node) -> int:
    """Return how many numbers a step carries on: states, and cells of an LSTM."""
    if not isinstance(node, Recurrent):
        return 0
    return node.states * (2 if node.kind == "lstm" else 1)


def _cost(inputs: int, nodes: tuple[Node, ...]) -> int:
    sizes = value_sizes(inputs, nodes)
    return sum(node.multiply_adds(*(sizes[k] for k in node.reads)) for node in nodes)


def run_steps(nodes: Sequence[Node], z: Floats) -> Floats:
    """Compute what steps make of scaled rows."""
    values = [z]
    for node in nodes:
        values.append(node.run(*(values[read] for read in node.reads)))
    return np.asarray(values[-1])


# --------------------------------------------------------------------------------------------------
# A folded network of windows
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FoldedGraph:
    """A model that needs nothing but these numbers; a runner by numpy."""

    facts: Facts
    graph: Graph
    output: Output
    stream: Stream | None = None  # of C alone: no file holds it
    narrowing: VarianceReduction | None = None  # the same

    def raw(self, X: NDArray[Any]) -> Floats:
        """Compute the columns of the last layer."""
        return self.graph.raw(self.facts.inside(X))

    def run(self, X: NDArray[Any]) -> Outputs:
        return self.finish(self.raw(X), X)

    def finish(self, raw: Floats, X: NDArray[Any], factor: float = 1.0) -> Outputs:
        """Turn the columns of rows X into predictions, and widen those of rows that are flagged.

        The `factor` is of the stds of the others.
        """
        found = self.output.finish(raw)
        if self.narrowing is not None and isinstance(found, MeanStd):
            kept = self.narrowing.kept(last_hidden(self.graph, self.facts.inside(X)))
            found = found._replace(std=found.std * np.sqrt(kept))
        return guarded(found, self.facts, X, factor)


# --------------------------------------------------------------------------------------------------
# Recurrent layers whose state continues from interval to interval
#
#     f_t = interval(x_t),    top_t, states = step(f_t, states),    raw = last(mean or last of top)
#
# with the states of the interval before, and the last `count` of top. That is another function than
# the trained one, and a factor is its own calibration: of logits, or of standard deviations.
# --------------------------------------------------------------------------------------------------


class Running:
    """The states of one stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._tops: deque[Floats] = deque(maxlen=stream.count if stream.mean else 1)
        self.begin()

    def begin(self) -> None:
        """Forget all intervals."""
        self._states = [
            (np.zeros((1, node.states)),) * 2 if isinstance(node, Recurrent) else None
            for node in self.stream.step
        ]
        self._tops.clear()

    def push(self, z: Floats) -> None:
        """Go on by an interval of scaled numbers, (1, read)."""
        value = run_steps(self.stream.interval, z)
        for k, node in enumerate(self.stream.step):
            states = self._states[k]
            if states is None:
                value = node.run(value)
            else:
                assert isinstance(node, Recurrent)
                self._states[k] = states = node.step(value, *states)
                value = states[0]
        self._tops.append(value)

    def raw(self) -> Floats:
        """Compute the columns of the last layer, (1, columns)."""
        return run_steps(self.stream.last, np.mean(self._tops, axis=0))


def finished(folded: FoldedGraph, raw: Floats, X: NDArray[Any], factor: float) -> Outputs:
    """Turn columns into predictions: logits, or stds that no guard widened, times the factor."""
    if folded.facts.is_classifier:
        return folded.finish(factor * raw, X)
    return folded.finish(raw, X, factor)
