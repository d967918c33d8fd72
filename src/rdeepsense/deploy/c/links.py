"""A link as C: macros that read the last layer's columns `raw` of output `k`."""

from __future__ import annotations

import numpy as np

from rdeepsense.deploy.c.text import number
from rdeepsense.errors import InputError
from rdeepsense.link import Expression, LocationWidth, evaluate

FUNCTIONS = {"softplus": "softplus", "exp": "exp_of", "sqrt": "root", "square": "square"}
SIGNS = {"add": "+", "multiply": "*"}


class CArithmetic:
    """Expressions of C; `used` gathers the functions in them, by their operation."""

    def __init__(self, outputs: str) -> None:
        self.outputs = outputs
        self.used: set[str] = set()

    def column(self, number: int) -> str:
        start = {0: "", 1: f"{self.outputs} + "}.get(number, f"{number} * {self.outputs} + ")
        return f"raw[{start}k]"

    def constant(self, value: float) -> str:
        with np.errstate(over="ignore"):
            if not np.isfinite(np.float32(value)):
                raise InputError(f"the link holds {value}, which float32 cannot hold")
        return number(value)

    def apply(self, operation: str, *arguments: str) -> str:
        if operation in SIGNS:
            return f"({f' {SIGNS[operation]} '.join(arguments)})"
        self.used.add(operation)
        (argument,) = arguments
        # Only sums and products begin with a parenthesis, and it closes at their end.
        argument = argument if argument.startswith("(") else f"({argument})"
        return f"{FUNCTIONS[operation]}{argument}"


def macros(link: LocationWidth, outputs: str, laplace: bool) -> tuple[str, set[str]]:
    """LOCATION and WIDTH, with a Laplace part VARIANCE; and the operations that they use.

    That part is added to the variance, width = root(variance + gain size^2), so it needs a root.
    """
    arithmetic = CArithmetic(outputs)
    width: Expression | None = link.variance if laplace else link.width
    parts = {
        "LOCATION": evaluate(link.location, arithmetic),
        "VARIANCE" if laplace else "WIDTH": evaluate(0.0 if width is None else width, arithmetic),
    }
    text = "".join(f"#define {name}(raw, k) {body}\n" for name, body in parts.items())
    return text, arithmetic.used
