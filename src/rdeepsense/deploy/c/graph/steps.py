"""Steps of a graph as calls of the runtime, and the tables that they read."""

from __future__ import annotations

from math import prod
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.graph.buffers import Buffers
from rdeepsense.deploy.c.graph.layers import WIDEST, ByteLayers, FloatLayers, Layers
from rdeepsense.deploy.c.graph.places import Places
from rdeepsense.deploy.c.tables import Table
from rdeepsense.deploy.folded.graph.graph import value_sizes
from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.folded.graph.pointwise import Activation, Affine, Mean, Sum
from rdeepsense.deploy.folded.graph.recurrent import Recurrent
from rdeepsense.deploy.folded.graph.shaping import Concatenated, Strided
from rdeepsense.deploy.folded.graph.spectrum import Spectrum
from rdeepsense.deploy.folded.graph.stream import state_size
from rdeepsense.deploy.folded.graph.weighted import Convolution, Linear, Pool
from rdeepsense.errors import InputError

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
