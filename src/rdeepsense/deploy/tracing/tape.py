"""The steps that a pass has taken so far, and which tensors they made."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.graph.graph import value_sizes
from rdeepsense.deploy.folded.graph.node import Node
from rdeepsense.deploy.tracing.strides import strided
from rdeepsense.errors import InputError

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
