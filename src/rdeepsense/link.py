"""Links: the last layer's columns turned into what a head predicts, as data.

A link is a small expression over columns and constants, so that every run-time reads the same one:
numpy, torch, C and ONNX each bring an `Arithmetic`, and `evaluate` walks the expression with it.
For the Gaussian head of the paper (section 3.1.2)

    location = column 0,    width = sqrt(softplus(column 1) + 1e-4)

where the k-th column of output j is number k * outputs + j of the last layer. `Softmax` is the link
of classes. A folded model's file holds its link as nested lists (`to_json`, `from_json`).
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rdeepsense.errors import InputError

# The operations that every run-time has, and how many arguments each takes.
OPERATIONS = {"add": 2, "multiply": 2, "softplus": 1, "exp": 1, "sqrt": 1, "square": 1}
DEEPEST = 16
T = TypeVar("T")
Json = str | int | float | None | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Column:
    """The k-th number that the last layer gives for an output."""

    number: int


@dataclass(frozen=True)
class Operation:
    """One of `OPERATIONS` on numbers and further expressions."""

    name: str
    arguments: tuple[Expression, ...]


Expression = Column | Operation | float


@dataclass(frozen=True)
class LocationWidth:
    """The link of numbers: std = spread width, mean = location + shift std, output by output.

    `width` is None for a point estimate, which says nothing of its spread.
    """

    location: Expression
    width: Expression | None

    @property
    def columns(self) -> int:
        """How many numbers the last layer must give for each output."""
        return 1 + max(_columns(self.location), _columns(self.width))

    @property
    def variance(self) -> Expression | None:
        """The square of the width, without a root that would be squared again."""
        if isinstance(self.width, Operation) and self.width.name == "sqrt":
            return self.width.arguments[0]
        return None if self.width is None else square(self.width)


@dataclass(frozen=True)
class Softmax:
    """The link of classes: probabilities = softmax(columns), one column for each class."""

    @property
    def columns(self) -> int:
        return 1


Link = LocationWidth | Softmax


class Arithmetic(Protocol[T]):
    """The arithmetic of a run-time; T is its number, array, tensor, text or node."""

    def column(self, number: int) -> T:
        """Return one of the last layer's columns."""

    def constant(self, value: float) -> T:
        """Return a number."""

    def apply(self, operation: str, *arguments: T) -> T:
        """Apply one of `OPERATIONS`."""


def evaluate(expression: Expression, arithmetic: Arithmetic[T]) -> T:
    """Compute an expression in a run-time's own arithmetic."""
    if isinstance(expression, Column):
        return arithmetic.column(expression.number)
    if isinstance(expression, Operation):
        arguments = (evaluate(argument, arithmetic) for argument in expression.arguments)
        return arithmetic.apply(expression.name, *arguments)
    return arithmetic.constant(expression)


def add(a: Expression, b: Expression) -> Operation:
    return Operation("add", (a, b))


def multiply(a: Expression, b: Expression) -> Operation:
    return Operation("multiply", (a, b))


def softplus(a: Expression) -> Operation:
    """Return log(1 + e^a), which is positive."""
    return Operation("softplus", (a,))


def exp(a: Expression) -> Operation:
    return Operation("exp", (a,))


def sqrt(a: Expression) -> Operation:
    return Operation("sqrt", (a,))


def square(a: Expression) -> Operation:
    return Operation("square", (a,))


def to_json(link: Link) -> Json:
    """Return nested lists and numbers, as a model file holds them."""
    if isinstance(link, Softmax):
        return "softmax"
    return {"location": _to_json(link.location), "width": _to_json(link.width)}


def from_json(value: Json) -> Link:
    """Return the link that `to_json` wrote, or refuse anything else."""
    if value == "softmax":
        return Softmax()
    if not isinstance(value, dict) or value.keys() != {"location", "width"}:
        raise InputError(f"link = {value!r:.80} is unknown; accepted: softmax, location and width")
    width = None if value["width"] is None else _from_json(value["width"], 0)
    return LocationWidth(_from_json(value["location"], 0), width)


def _to_json(expression: Expression | None) -> Json:
    if isinstance(expression, Column):
        return ["column", expression.number]
    if isinstance(expression, Operation):
        return [expression.name, *(_to_json(argument) for argument in expression.arguments)]
    return expression


def _from_json(value: Json, depth: int) -> Expression:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if depth == DEEPEST:
        raise InputError(f"the link nests operations more than {DEEPEST} deep")
    if isinstance(value, list) and value:
        name, *arguments = value
        if name == "column" and len(arguments) == 1 and type(arguments[0]) is int:
            return Column(arguments[0])
        if isinstance(name, str) and OPERATIONS.get(name) == len(arguments):
            return Operation(name, tuple(_from_json(part, depth + 1) for part in arguments))
    known = ", ".join(OPERATIONS)
    raise InputError(
        f"the link holds {reprlib.repr(value)}; accepted: numbers, columns, and {known}"
    )


def _columns(expression: Expression | None) -> int:
    """Return the greatest column that an expression reads; -1 where it reads none."""
    if isinstance(expression, Column):
        return expression.number
    if isinstance(expression, Operation):
        return max(_columns(argument) for argument in expression.arguments)
    return -1
