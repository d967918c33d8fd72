"""The C of networks of windows: buffers, steps, packed layers, sampling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rdeepsense.arrays import Floats
from rdeepsense.deploy.c.emit import (
    LINK,
    OF_GRAPHS,
    Source,
    Table,
    learning_config,
    link_macros,
    switches,
    tables_of,
    watch_config,
)
from rdeepsense.deploy.c.inputs import (
    CLive,
    CModel,
    StoredGraph,
    Weighted,
    bytes_of,
    number,
    plain_model,
)
from rdeepsense.deploy.c.layout import ON_A_LINE, Array, Dimensions, begin_of, up
from rdeepsense.deploy.folded.graph import (
    Activation,
    Affine,
    Concatenated,
    Convolution,
    FoldedGraph,
    Linear,
    Mean,
    Node,
    Pool,
    Recurrent,
    Spectrum,
    Stream,
    Strided,
    Sum,
    last_layer,
    state_size,
    value_sizes,
)
from rdeepsense.deploy.folded.model import Facts
from rdeepsense.deploy.quantise import BLOCK
from rdeepsense.errors import InputError
from rdeepsense.windowing.stream import COVERAGE, LEAST, TRUSTED, Sampling, Smoothing, prior_of

# --------------------------------------------------------------------------------------------------
# Shared buffers for the values of steps
#
# A value is there from the step that makes it to the last one that reads it. A value that is a
# stretch of another lies inside of it, and a step that changes numbers one by one does so in their
# place.
# --------------------------------------------------------------------------------------------------

IN_PLACE = (Activation, Affine, Sum)


@dataclass(frozen=True)
class Buffers:
    """The place of each value: which one it lies in, and where in that; where those lie."""

    homes: tuple[tuple[int, int], ...]
    starts: dict[int, int]  # of values that have a home of their own in the buffer
    length: int

    @classmethod
    def plan(cls, inputs: int, nodes: tuple[Node, ...]) -> Buffers:
        """Find places; value 0 and the last one lie elsewhere."""
        sizes = value_sizes(inputs, nodes)
        homes = _homes(nodes)
        until: dict[int, int] = {}
        for k, node in enumerate(nodes):
            for read in node.reads:
                until[homes[read][0]] = k
        starts: dict[int, int] = {}
        length = 0
        for k in range(len(nodes)):
            home = homes[k + 1][0]
            if home != k + 1 or k + 1 == len(nodes):
                continue
            busy = sorted(
                (starts[other], starts[other] + sizes[other])
                for other in starts
                if until.get(other, k) >= k
            )
            start = 0
            for low, high in busy:
                if low - start >= sizes[home]:
                    break
                start = max(start, high)
            starts[home] = start
            length = max(length, start + sizes[home])
        return cls(homes, starts, length)

    def start(self, value: int) -> int:
        """Return where a value begins in the buffer, or in value 0 where it lies in that."""
        home, offset = self.homes[value]
        return offset + (0 if home == 0 else self.starts[home])


def _homes(nodes: tuple[Node, ...]) -> tuple[tuple[int, int], ...]:
    """Return for each value the one that it lies in, and where."""
    homes = [(0, 0)]
    last: dict[int, int] = {}
    for k, node in enumerate(nodes):
        for read in node.reads:
            last[read] = k
    for k, node in enumerate(nodes):
        home, offset = homes[node.reads[0]]
        if k + 1 == len(nodes):
            homes.append((k + 1, 0))
        elif isinstance(node, Strided) and node.is_run:
            homes.append((home, offset + node.offset))
        elif isinstance(node, IN_PLACE) and _alone(homes, last, home, k):
            homes.append((home, offset))
        else:
            homes.append((k + 1, 0))
    return tuple(homes)


def _alone(homes: list[tuple[int, int]], last: dict[int, int], home: int, k: int) -> bool:
    """Tell whether no later step reads what shares a home, which is not the row itself."""
    sharing = [value for value, (own, _) in enumerate(homes) if own == home]
    return home != 0 and all(last.get(value, -1) <= k for value in sharing)


# --------------------------------------------------------------------------------------------------
# C expressions for the place of a value, for one row or several
#
# Some rows go through a program together, step by step, so that the weights of a step are near for
# all of them. Row r has its values in `w[r]`, and reads and writes what lies r times as far as the
# row is long.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """The values of a program: value 0 is `x`, the last one `to`, others lie in the buffer."""

    buffers: Buffers
    sizes: tuple[int, ...]
    many: bool = False

    def pointer(self, value: int) -> str:
        """Return where a value is, inside of a loop over rows where there are some."""
        return self._at(value, self.many)

    def first(self, value: int) -> str:
        """Return where a value of the first row is."""
        return self._at(value, False)

    def apart(self, value: int) -> str:
        """Return how far a value of the next row is."""
        name = self._name(value)
        return "BETWEEN" if name == "w" else str(self.sizes[0 if name == "x" else -1])

    @property
    def lists(self) -> str:
        """Return the room for lists."""
        return "&w[r].lists" if self.many else "&w->lists"

    def loop(self, lines: list[str]) -> list[str]:
        """Repeat lines for each row."""
        if not self.many:
            return lines
        return ["for (r = 0; r < rows; ++r) {", *(f"    {line}" for line in lines), "}"]

    def _name(self, value: int) -> str:
        if value + 1 == len(self.sizes):
            return "to"
        return "x" if self.buffers.homes[value][0] == 0 else "w"

    def _at(self, value: int, each: bool) -> str:
        name = self._name(value)
        if name == "w":
            base = "w[r].arena" if each else "w->arena"
        else:
            base = f"{name} + r * {self.apart(value)}" if each else name
        offset = 0 if name == "to" else self.buffers.start(value)
        return f"{base} + {offset}" if offset else base


# --------------------------------------------------------------------------------------------------
# Layer weights in the order in which C reads them
#
# Floats lie in panels of outputs, in a panel input by input. Bytes lie in blocks of outputs, in a
# block in groups of four inputs, in a group output by output, as those of fully-connected networks.
# Inputs of a convolution follow one another column by column of its kernel; among bytes each column
# is filled up to fours with zeros. Groups of a convolution lie one after the other.
# --------------------------------------------------------------------------------------------------

PANEL = 64  # outputs, see runtime/weighted.h


def by_columns(weight: NDArray[Any], groups: int) -> NDArray[Any]:
    """Arrange weights as (groups, outputs, columns of the kernel, inputs of a column)."""
    split = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
    if split.ndim == 3:
        return split[:, :, None]
    turned = split.transpose(0, 1, 4, 3, 2)
    return turned.reshape(*turned.shape[:3], -1)


def panels(weight: NDArray[Any], groups: int) -> NDArray[Any]:
    """Lay floats out."""
    columns = by_columns(weight, groups)
    rows = columns.reshape(*columns.shape[:2], -1).transpose(0, 2, 1)
    parts = [
        one[:, first : first + PANEL].ravel()
        for one in rows
        for first in range(0, rows.shape[-1], PANEL)
    ]
    return np.concatenate(parts)


def fours(weight: NDArray[np.int8], groups: int) -> tuple[NDArray[np.int8], int]:
    """Lay bytes out; returns also how many groups of four a group of outputs reads."""
    columns = by_columns(weight, groups)
    more = -columns.shape[-1] % 4
    filled = np.pad(columns, ((0, 0), (0, 0), (0, 0), (0, more)))
    rows = filled.reshape(*filled.shape[:2], -1, 4)
    parts = [
        one[first : first + BLOCK].transpose(1, 0, 2).ravel()
        for one in rows
        for first in range(0, rows.shape[1], BLOCK)
    ]
    return np.concatenate(parts), rows.shape[2]


# --------------------------------------------------------------------------------------------------
# Tables of layers with weights, and scratch memory of their products
# --------------------------------------------------------------------------------------------------

WIDEST = 65_535  # sizes of layers are 16 bits


class Layers(ABC):
    """Layers of one model, in the order of their calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[str] = []  # of the runtime's table
        self.sums = self.room = 4

    def add(self, node: Weighted) -> int:
        """Add a layer; returns its number."""
        groups = node.groups if isinstance(node, Convolution) else 1
        wide = node.weight.shape[3] if isinstance(node, Convolution) else 1
        outputs, inputs = len(node.bias) // groups, node.weight.size // len(node.bias)
        if max(inputs, outputs) > WIDEST:
            size = max(inputs, outputs)
            raise InputError(f"a layer of {size} is too wide for C; at most {WIDEST}")
        self.sums = max(self.sums, outputs)
        relu = int(isinstance(node, Linear | Convolution) and node.relu)
        row = self._row(node, groups, wide, inputs, outputs)
        self.rows.append(f"{{{row}, {relu}}}")
        return len(self.rows) - 1

    @property
    @abstractmethod
    def tables(self) -> list[Table]:
        """All tables."""

    @abstractmethod
    def config(self, convolved: bool) -> list[str]:
        """Write the macros of `list` in C, beside SUMS."""

    @abstractmethod
    def lists(self, convolved: bool) -> list[Array]:
        """Return the members of `list` in C behind its sums."""

    @abstractmethod
    def _row(self, node: Weighted, groups: int, wide: int, inputs: int, outputs: int) -> str: ...

    def _named(self, what: str, values: NDArray[Any], kind: str = "float") -> Table:
        return Table(kind, f"{self.name}_{what}_{len(self.rows)}", np.ascontiguousarray(values))


class FloatLayers(Layers):
    """Layers of float32."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._tables: list[Table] = []
        self.taps = 1

    @property
    def tables(self) -> list[Table]:
        return self._tables

    def config(self, convolved: bool) -> list[str]:
        lines = [f"#define ROOM {self.room} /* for the inputs of a layer */"]
        if convolved:
            lines.append(f"#define TAPS {self.taps} /* columns that a kernel reads */")
        return lines

    def lists(self, convolved: bool) -> list[Array]:
        taps = [Array("int32_t", "held", self.taps), Array("uint32_t", "count", self.taps)]
        return [
            Array("float", "value", self.room),
            *(taps if convolved else []),
            Array("uint16_t", "index", self.room),
        ]

    def _row(self, node: Weighted, groups: int, wide: int, inputs: int, outputs: int) -> str:
        # A list of each column that a kernel reads, filled up to fours.
        self.room = max(self.room, wide * -(-inputs // wide // 4) * 4)
        self.taps = max(self.taps, wide)
        own = [self._named("weight", panels(node.weight, groups)), self._named("bias", node.bias)]
        self._tables += own
        return f"{own[0].name}, {own[1].name}, {inputs}, {outputs}"


class ByteLayers(Layers):
    """Layers of bytes. Weights are one table, as wide registers read past the end of a layer's."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._parts: list[NDArray[np.int8]] = []
        self._tables: list[Table] = []
        self._end = 0
        self.low = self.groups = 4

    @property
    def tables(self) -> list[Table]:
        packed = np.concatenate(self._parts)
        name = f"{self.name}_weights"
        return [Table("int8_t", name, packed, "PAD", ON_A_LINE), *self._tables]

    def config(self, convolved: bool) -> list[str]:
        return [
            f"#define WHOLES {self._wholes} /* sums of products */",
            f"#define ROOM {self.room} /* bytes that a layer reads */",
            f"#define LOW {self.low} /* of those that have two bytes */",
            f"#define GROUPS {self.groups} /* of four bytes */",
        ]

    def lists(self, convolved: bool) -> list[Array]:
        return [
            Array("int32_t", "whole", self._wholes),
            Array("uint8_t", "byte", self.room),
            Array("uint8_t", "low", self.low),
            Array("uint16_t", "group", self.groups),
        ]

    @property
    def _wholes(self) -> int:
        return up(self.sums, BLOCK)

    def _row(self, node: Weighted, groups: int, wide: int, inputs: int, outputs: int) -> str:
        whole, factor = bytes_of(node.weight)
        packed, count = fours(whole, groups)
        begin = begin_of(self._end, packed.size)
        self._parts += [np.zeros(begin - self._end, np.int8), packed]
        self._end = begin + packed.size
        levels = getattr(node, "levels", 0)
        columns = _columns(node, wide) if isinstance(node, Convolution) else 1
        room = columns * count // wide * 4
        self.room = max(self.room, room)
        self.low = max(self.low, room if levels else 0)
        self.groups = max(self.groups, -(-count // 2) * 2)
        own = [self._named("bias", node.bias), self._named("factor", factor)]
        if getattr(node, "signed", True):
            total = whole.reshape(len(whole), -1).sum(1, dtype=np.int32)
            own.append(self._named("total", total, "int32_t"))
        self._tables += own
        bias, factors, totals = [*(table.name for table in own), "0"][:3]
        layer = f"{self.name}_weights + {begin}, {bias}, {factors}, 0, {count}, {outputs}"
        return f"{{{layer}}}, {totals}, {inputs}, {levels}"


def _columns(node: Convolution, wide: int) -> int:
    """Count columns that places of a kernel in one row read, and those gathered for one place."""
    reach = (node.out()[1] - 1) * node.stride[1] + (wide - 1) * node.dilation[1] + 1
    return reach + (wide if node.dilation[1] > 1 else 0)


# --------------------------------------------------------------------------------------------------
# Steps of a graph as calls of the runtime, with their tables
# --------------------------------------------------------------------------------------------------

AXES = 4  # that the runtime moves at once
Layer = Linear | Convolution
FUNCTION = {"relu": "rectify", "sigmoid": "sigmoids", "tanh": "tangents"}


class Steps:
    """The C of all programs of one model, and what they need, gathered as they are written."""

    def __init__(self, name: str, dtype: str) -> None:
        self.name = name
        self.tables: list[Table] = []
        self.layers: Layers = ByteLayers(name) if dtype == "int8" else FloatLayers(name)
        self.planes: list[str] = []
        self.switches: set[str] = set()
        self.text = ""
        self.arena = self.waves = self.states = 1

    @property
    def sums(self) -> int:
        """Of a layer, or of the waves of an interval."""
        return max(self.waves, self.layers.sums)

    @property
    def all_tables(self) -> list[Table]:
        """Tables of layers and of other steps."""
        return [*self.layers.tables, *self.tables]

    def program(
        self,
        name: str,
        inputs: int,
        nodes: tuple[Node, ...],
        states: bool = False,
        hidden: bool = False,
        many: bool = False,
    ) -> None:
        """Write a function that takes these steps from x to `to`.

        With `hidden` what the last step reads is kept. With `many` it takes some rows, each with
        a `work` of its own, step by step, so that weights are near for all of them.
        """
        sizes, buffers = value_sizes(inputs, nodes), Buffers.plan(inputs, nodes)
        self.arena = max(self.arena, buffers.length)
        places = Places(buffers, sizes, many)
        lines: list[str] = []
        carried = 0
        for k, node in enumerate(nodes):
            end = k + 1 == len(nodes)
            if isinstance(node, Strided) and node.is_run and not end:
                continue  # lies where it is
            read = [places.pointer(value) for value in node.reads]
            own = [sizes[value] for value in node.reads]
            if hidden and end:
                self.switches.add("COPIED")
                lines.append(f"copy({own[0]}, {read[0]}, w->hidden);")
            if many and _takes_rows(node, own[0]):
                values = (node.reads[0], k + 1)
                pairs = ", ".join(f"{places.first(v)}, {places.apart(v)}" for v in values)
                lines.append(self._rows(node, "rows", pairs, "&w->lists"))
            else:
                to = places.pointer(k + 1)
                lines += places.loop(self._lines(node, own, read, to, places.lists, carried))
            carried += state_size(node)
        self.states = max(self.states, carried)
        more = "float *states, " if states else ""
        body = "".join(f"    {line}\n" for line in lines)
        first = "    unsigned r;\n" if "for (r" in body else ""
        first += "    (void)w;\n" if "w->" not in body and "w[r]" not in body else ""
        rows = "unsigned rows, " if many else ""
        head = f"static void {name}({rows}const float *x, float *to, {more}work *w)"
        self.text += f"{head}\n{{\n{first}{body}}}\n\n"

    def _lines(
        self, node: Node, sizes: list[int], read: list[str], to: str, lists: str, carried: int
    ) -> list[str]:
        x, size = read[0], sizes[0]
        if isinstance(node, Linear):
            outputs, inputs = node.weight.shape
            pairs = f"{x}, {inputs}, {to}, {outputs}"
            return [self._rows(node, str(size // inputs), pairs, lists)]
        if isinstance(node, Convolution):
            return [self._rows(node, "1", f"{x}, 0, {to}, 0", lists)]
        if isinstance(node, Recurrent):
            self.switches |= {"GATED", "SIGMOIDAL", "TANGENTIAL", f"HAS_{node.kind.upper()}"}
            number = self.layers.add(node)
            steps = size // len(node.weight)
            at = f"states + {carried}" if carried else "states"
            return [f"{node.kind}(weighted + {number}, {steps}, {x}, {at}, {to}, {lists});"]
        if isinstance(node, Spectrum):
            return [self._spectrum(node, size, x, to, lists)]
        if isinstance(node, Affine):
            self.switches.add("NORMED")
            scale, shift = self._table("norm", node.scale), self._table("level", node.shift)
            channels = len(node.scale)
            counts = f"{channels}, {size // channels}, {int(node.relu)}"
            return [f"affine({scale}, {shift}, {counts}, {x}, {to});"]
        if isinstance(node, Activation):
            self.switches.add(f"USES_{node.name.upper()}")
            self.switches |= {"sigmoid": {"SIGMOIDAL"}, "tanh": {"TANGENTIAL"}}.get(
                node.name, set()
            )
            return [f"{FUNCTION[node.name]}({size}, {x}, {to});"]
        if isinstance(node, Sum):
            self.switches.add("ADDED")
            return [f"add({size}, {x}, {read[1]}, {to});"]
        if isinstance(node, Mean):
            self.switches.add("AVERAGED")
            outer = size // node.count // node.inner
            return [f"average({outer}, {node.count}, {node.inner}, {x}, {to});"]
        if isinstance(node, Pool):
            return [self._pool(node, size, x, to)]
        if isinstance(node, Strided):
            return [self._moved(node, x, to)]
        assert isinstance(node, Concatenated)
        self.switches.add("COPIED")
        starts = np.cumsum([0, *sizes])
        return [
            f"copy({n}, {one}, {_plus(to, int(start))});"
            for n, one, start in zip(sizes, read, starts, strict=False)
        ]

    def _rows(self, node: Layer, rows: str, pairs: str, lists: str) -> str:
        """Write the call of a layer that takes some rows: where each lies, and how far apart."""
        if isinstance(node, Linear):
            number = self.layers.add(node)
            return f"linear(weighted + {number}, {rows}, {pairs}, {lists});"
        self.switches.add("CONVOLVED")
        high, wide = node.weight.shape[2:]
        number = self.layers.add(node)
        plane = [node.height, node.width, *node.out(), high, wide, *node.stride]
        plane += [*node.padding, *node.dilation, node.groups]
        self._check(max(plane))
        self.planes.append("{" + ", ".join(map(str, plane)) + "}")
        at = f"weighted + {number}, planes + {len(self.planes) - 1}"
        return f"convolve({at}, {rows}, {pairs}, {lists});"

    def _spectrum(self, node: Spectrum, size: int, x: str, to: str, lists: str) -> str:
        self.switches |= {"SPECTRAL", "USES_SQRT"}
        self.waves = max(self.waves, 2 * node.terms)
        cosines, sines = (
            self._table(name, wave)
            for name, wave in zip(("cosines", "sines"), node.waves, strict=True)
        )
        intervals = size // node.interval // node.channels
        counts = f"{node.interval}, {node.channels}, {intervals}"
        return f"spectrum({cosines}, {sines}, {counts}, {x}, {to}, {lists});"

    def _pool(self, node: Pool, size: int, x: str, to: str) -> str:
        self.switches.add("POOLED")
        numbers = (node.height, node.width, *node.places(node.kernel), *node.kernel, *node.stride)
        self._check(max(numbers))
        table = self._table("pool", np.array(numbers), "uint16_t")
        channels = size // (node.height * node.width)
        return f"pool({table}, {channels}, {int(node.name == 'mean')}, {x}, {to});"

    def _moved(self, node: Strided, x: str, to: str) -> str:
        at = _plus(x, node.offset)
        if node.is_run:
            self.switches.add("COPIED")
            return f"copy({prod(node.sizes)}, {at}, {to});"
        if len(node.sizes) > AXES:
            raise InputError(
                f"a transpose of {len(node.sizes)} axes cannot be exported as C; at most {AXES}"
            )
        self.switches.add("MOVED")
        more = AXES - len(node.sizes)
        size = self._table("size", np.array([1] * more + list(node.sizes)), "int32_t")
        stride = self._table("stride", np.array([0] * more + list(node.strides)), "int32_t")
        return f"move({size}, {stride}, {at}, {to});"

    def _table(self, what: str, values: NDArray[Any], kind: str = "float") -> str:
        number = sum(table.name.startswith(f"{self.name}_{what}_") for table in self.tables)
        name = f"{self.name}_{what}_{number}"
        self.tables.append(Table(kind, name, np.ascontiguousarray(values)))
        return name

    def _check(self, size: int) -> None:
        if size > WIDEST:
            raise InputError(f"a layer of {size} is too wide for C; at most {WIDEST}")


def _takes_rows(node: Node, size: int) -> TypeGuard[Layer]:
    """Tell whether a layer takes each row of some as a whole."""
    if isinstance(node, Linear):
        return bool(size == node.weight.shape[1])
    return isinstance(node, Convolution)


def _plus(pointer: str, offset: int) -> str:
    return f"{pointer} + {offset}" if offset else pointer


# --------------------------------------------------------------------------------------------------
# The model that the C of a graph is generated from
# --------------------------------------------------------------------------------------------------


def graph_model(
    folded: FoldedGraph,
    network: StoredGraph,
    name: str,
    live: CLive | None = None,
) -> CModel:
    """Take from a folded graph what its C needs."""
    facts, graph, output = folded.facts, folded.graph, folded.output
    learns = live is not None or folded.narrowing is not None
    hidden = (last_layer(graph).weight.shape[1],) if learns else ()
    widths = (graph.inputs, *hidden, graph.columns)
    plain = plain_model(name, network, widths, facts, output, graph)
    window = prod(graph.shape[:-1])
    return replace(plain, window=window, live=live, narrowing=folded.narrowing)


# --------------------------------------------------------------------------------------------------
# A stream of samples in C: sizes, constants, how windows are computed
# --------------------------------------------------------------------------------------------------

WAYS = ("exact", "running", "window")
SIZES = """
/* In a stream of samples: points of a window, and from one to the next; points a second; the time
   without a sample, in microseconds, that ends a window; and sizes of what is kept. */"""


@dataclass(frozen=True)
class Sampled:
    """Windows cut from samples on the device."""

    sampling: Sampling
    smoothing: Smoothing | None  # None for numbers
    way: str
    read: int  # points that are taken at once: a window, or an interval

    @classmethod
    def of(
        cls,
        sampling: Sampling,
        smoothing: Smoothing | None,
        stream: Stream | None,
        way: str | None = None,
    ) -> Sampled:
        """Choose the cheapest way that is equal to the window, or take the one that is asked for.

        Intervals can be kept where they divide the hop.
        """
        interval = None if stream is None else sampling.length // stream.count
        divides = interval is not None and sampling.hop % interval == 0
        if way is None:
            way = "exact" if divides and sampling.hop < sampling.length else "window"
        if way not in WAYS:
            raise InputError(f"stream={way!r} is unknown; accepted: {', '.join(map(repr, WAYS))}")
        if way != "window" and not divides:
            what = "the network has no intervals that could be computed by themselves"
            if interval is not None:
                what = f"a hop of {sampling.hop} samples is no multiple of {interval}, an interval"
                what += f"; hop={whole_hop(sampling, interval) / sampling.rate:.6g} is one"
            raise InputError(f"stream={way!r}: {what}; accepted here: 'window'")
        read = sampling.length if way == "window" or interval is None else interval
        return cls(sampling, smoothing, way, read)

    @property
    def switches(self) -> dict[str, bool]:
        """What of the runtime it needs."""
        return {
            "SAMPLED": True,
            "STEPWISE": self.way != "window",
            "STEPWISE_EXACT": self.way == "exact",
            "SMOOTHED": self.smoothing is not None,
        }

    @cached_property
    def points(self) -> int:
        """How many points are kept."""
        return self.read + self.sampling.ahead

    def sizes(self, name: str) -> list[str]:
        """What model.h says of it."""
        own = self.sampling
        found = {
            "SAMPLES": own.length,
            "HOP": own.hop,
            "RATE": number(own.rate),
            "GAP": f"{own.gap}LL",
            "SENSORS": len(own.sensors),
            "POINTS": self.points,
            "PARTS": own.ticks.parts,
        }
        lines = [SIZES, *(f"#define {name}_{key} {value}" for key, value in found.items())]
        if self.smoothing is not None:
            lines += ["", "/* The probability that a label comes with, and is wrong with to go. */"]
            lines.append(f"#define {name}_CHANGE_AT {number(self.smoothing.at)}")
        return lines

    def config(self, facts: Facts) -> list[str]:
        """What model.c has of its own for it."""
        own, ticks = self.sampling, self.sampling.ticks
        lines = [
            f"#define SENSOR_TABLE {', '.join(map(str, own.firsts))}",
            f"#define NEAR {ticks.near}LL /* parts that make no difference */",
            f"#define PER_PART {number(1 / ticks.parts)}",
        ]
        for what, count in (("STEP", 1), ("HOP", own.hop), ("SPAN", own.length - 1)):
            whole, part = ticks.steps(count)
            lines.append(f"#define {what}_WHOLE {whole}LL")
            lines.append(f"#define {what}_PART {part}u")
        if self.smoothing is None:
            return [*lines, *_interval(facts)]
        prior = prior_of(None if facts.guard is None else facts.guard.fallback, facts.outputs)
        return [
            *lines,
            f"#define PRIOR_TABLE {_listed(prior)}",
            f"#define EVIDENCE {number(self.smoothing.evidence)}",
            f"#define CHANGE {number(self.smoothing.change)}",
            f"#define LEAST_PROB {number(LEAST)}",
            f"#define TRUSTED {int(TRUSTED)} /* flags of a window that is evidence all the same */",
        ]


def whole_hop(sampling: Sampling, interval: int) -> int:
    """Return the multiple of an interval that is next to the hop, one at least."""
    return max(1, round(sampling.hop / interval)) * interval


def _interval(facts: Facts) -> list[str]:
    assert facts.intervals is not None
    at, outputs = facts.intervals.row(COVERAGE), facts.outputs
    low, high = facts.intervals.low[at], facts.intervals.high[at]
    return [
        f"#define LOW_TABLE {_listed(low, outputs)}",
        f"#define HIGH_TABLE {_listed(high, outputs)}",
    ]


def _listed(values: Floats, count: int | None = None) -> str:
    wide = [number(value) for value in values]
    return ", ".join(wide * (count or len(wide)) if len(wide) == 1 else wide)


# --------------------------------------------------------------------------------------------------
# Code and tables of a network of windows
# --------------------------------------------------------------------------------------------------

ROOMY = 16_384  # bytes of scratch, of which a process has room for a few on its stack
STREAM = """
/* In a stream: times of an interval, intervals of a window, and sizes of what is kept. */"""


class GraphSource(Source):
    """The C of one model of windows.

    `running` is what its running form multiplies logits, or standard deviations, by; with `sampled`
    it takes samples, with `live` it learns on, with `personal` the caller may add to its last
    layer.
    """

    network: StoredGraph
    folded: FoldedGraph

    def __init__(
        self,
        folded: FoldedGraph,
        network: StoredGraph,
        name: str = "model",
        running: float = 1.0,
        sampled: Sampled | None = None,
        live: CLive | None = None,
        many: bool = False,
        personal: bool = False,
    ) -> None:
        self.folded, self.network, self.many = folded, network, many
        self.running, self.stream = running, network.stream
        self.sampled, self.personal = sampled, personal
        self.model = graph_model(folded, network, name, live)
        self.name = self.model.name
        self.steps = self._steps()
        self.dimensions = Dimensions.of(self.model, many)
        for table in self.steps.all_tables:
            table.check()
        self.tables = [*tables_of(self.model, self.dimensions), *self.steps.all_tables]

    def _steps(self) -> Steps:
        steps, graph = Steps(self.name, self.network.dtype), self.network.graph
        if self.stream is None:
            gated = any(node.kind in ("gru", "lstm") for node in graph.nodes)
            steps.program("whole_steps", graph.inputs, graph.nodes, gated, self.model.hidden > 0)
            return steps
        stream, (found, top, _) = self.stream, self.stream.sizes
        steps.program("interval_steps", stream.read, stream.interval, many=True)
        steps.program("recurrent_steps", found, stream.step, states=True, many=True)
        steps.program("last_steps", top, stream.last, hidden=self.model.hidden > 0)
        return steps

    @cached_property
    def switches(self) -> dict[str, bool]:
        """What of the runtime this model needs."""
        plain = switches(self.model)
        own = {name: name in self.steps.switches for name in OF_GRAPHS}
        own |= {"WINDOWS": True, "BYTES": self.network.dtype == "int8"}
        own |= {"STREAMS": self.stream is not None, "PERSONAL": self.personal}
        own |= {} if self.sampled is None else self.sampled.switches
        own |= {"MANY": self.many, "TOGETHER": self.scratch_bytes() < ROOMY}
        return plain | own | {"USES_SQRT": plain["USES_SQRT"] or own["SPECTRAL"]}

    @cached_property
    def values(self) -> dict[str, Any]:
        """The model in words: the type of its weights, and its steps."""
        kinds = [node.kind for node in self.network.graph.nodes if node.arrays]
        joined = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        shape = " x ".join(map(str, self.network.graph.shape))
        return {"dtype": self.network.dtype, "widths": f"windows of {shape}, {joined}"}

    def config(self) -> str:
        """The section of model.c that is the model's own."""
        steps, network = self.steps, self.network
        read = network.graph.inputs if self.stream is None else self.stream.read
        lines = [
            *(t.declaration() for t in self.tables),
            "",
            _macro_table("WEIGHT_TABLE", steps.layers.rows),
            *([_macro_table("PLANE_TABLE", steps.planes)] if steps.planes else []),
            f"#define CHANNELS {self.model.channels}u",
            f"#define COLUMNS {network.graph.columns} /* of the last layer */",
            f"#define READ {read} /* inputs that are scaled at once */",
            f"#define ARENA {steps.arena} /* numbers that steps hand on */",
            f"#define SUMS {steps.sums} /* of a layer */",
            *steps.layers.config("CONVOLVED" in steps.switches),
        ]
        if "GATED" in steps.switches:
            lines.append(f"#define STATES {steps.states} /* of recurrent layers */")
        if self.stream is not None:
            found, top, _ = self.stream.sizes
            lines += [f"#define FOUND {found}", f"#define TOP {top}"]
            lines.append(f"#define POOLS_MEAN {int(self.stream.mean)}")
            lines.append(f"#define RUNNING_FACTOR {number(self.running)}")
        if self.sampled is not None:
            lines += self.sampled.config(self.folded.facts)
        lines += watch_config(self.model) + learning_config(self.model)
        link = link_macros(self.model)[0]
        return "\n".join(lines) + "\n" + (f"\n{LINK}{link}" if link else "")

    def sections(self) -> dict[str, str]:
        """What model.c has of this model's own."""
        return super().sections() | {"steps.h": self.steps.text}

    def rows_at(self, z: Floats) -> Floats:
        """Windows whose numbers lie so many scales from the centre of the training rows."""
        return self.network.graph.rows_at(z)

    @property
    def multiply_adds(self) -> int:
        """Of one prediction."""
        return self.network.graph.multiply_adds

    def more_sizes(self) -> list[str]:
        """What model.h says of windows."""
        name = self.name.upper()
        lines = [f"#define {name}_CHANNELS {self.model.channels}"]
        if self.sampled is not None:
            lines += self.sampled.sizes(name)
        if self.stream is None:
            return lines
        stream, (found, top, _) = self.stream, self.stream.sizes
        sizes = {
            "INTERVAL": stream.read // self.model.channels,
            "INTERVALS": stream.count,
            "FOUND": found,
            "STATES": self.steps.states,
            "TOP": top,
            "TOPS": stream.count if stream.mean else 1,
        }
        return [*lines, STREAM, *(f"#define {name}_{key} {size}" for key, size in sizes.items())]

    def scratch(self) -> list[Array]:
        """The members of `work` in model.c."""
        steps, network, outputs = self.steps, self.network, self.model.outputs
        read = network.graph.inputs if self.stream is None else self.stream.read
        sizes = {"raw": network.graph.columns, "z": read, "arena": steps.arena}
        if "GATED" in steps.switches:
            sizes["states"] = steps.states
        if self.stream is not None:
            found, top, _ = self.stream.sizes
            sizes |= {"found": found, "top": top, "pooled": top}
            sizes |= {"personal": outputs * (top + 2) + top} if self.personal else {}
        if self.model.hidden:
            sizes["hidden"] = self.model.hidden
        own = [Array("float", name, count) for name, count in sizes.items()]
        return [
            *own,
            Array("float", "sum", steps.sums),
            *steps.layers.lists("CONVOLVED" in steps.switches),
        ]


def _macro_table(name: str, rows: list[str]) -> str:
    return f"#define {name} " + ", \\\n    ".join(["\\\n    " + rows[0], *rows[1:]])
