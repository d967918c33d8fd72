"""The tables of layers with weights, and the room that C needs to multiply with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.graph.packed import fours, panels
from rdeepsense.deploy.c.graph.rounded import Weighted
from rdeepsense.deploy.c.graph.stored import bytes_of
from rdeepsense.deploy.c.layout import ON_A_LINE, Array, begin_of, up
from rdeepsense.deploy.c.tables import Table
from rdeepsense.deploy.folded.graph.weighted import Convolution, Linear
from rdeepsense.deploy.quantise import BLOCK
from rdeepsense.errors import InputError

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
