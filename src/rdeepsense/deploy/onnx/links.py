"""Links as ONNX nodes, and as torch operations that torch writes as such."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rdeepsense.deploy.onnx.nodes import Nodes

OPERATORS = {"add": "Add", "multiply": "Mul", "softplus": "Softplus", "exp": "Exp", "sqrt": "Sqrt"}
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "multiply": torch.mul,
    "softplus": torch.nn.functional.softplus,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "square": torch.square,
}


@dataclass
class NodeArithmetic:
    """The arithmetic of links whose numbers are the names of a graph's values."""

    nodes: Nodes
    columns: list[str]
    made: int = 0

    def column(self, number: int) -> str:
        return self.columns[number]

    def constant(self, value: float) -> str:
        return self.nodes.single(self._name("constant"), value)

    def apply(self, operation: str, *arguments: str) -> str:
        if operation == "square":
            return self.nodes.node("Mul", [*arguments, *arguments], self._name(operation))
        return self.nodes.node(OPERATORS[operation], list(arguments), self._name(operation))

    def _name(self, what: str) -> str:
        self.made += 1
        return f"link_{what}_{self.made}"


@dataclass(frozen=True)
class TensorArithmetic:
    """The arithmetic of links over tensors (rows, outputs), one for each column of an output."""

    columns: tuple[Tensor, ...]

    def column(self, number: int) -> Tensor:
        return self.columns[number]

    def constant(self, value: float) -> Tensor:
        return torch.tensor(value, dtype=self.columns[0].dtype)

    def apply(self, operation: str, *arguments: Tensor) -> Tensor:
        return FUNCTIONS[operation](*arguments)
