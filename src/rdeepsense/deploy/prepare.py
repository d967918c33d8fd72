"""The network of a folded model in the type that its weights will be stored in."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.networks import FloatNetwork, as_float16, as_float32
from rdeepsense.deploy.quantise import Int8Network, quantise
from rdeepsense.errors import InputError

DTYPES = ("float32", "float16", "int8")


def prepare(folded: Folded, dtype: str, X: NDArray[Any]) -> FloatNetwork | Int8Network:
    """Round a network; the rows X calibrate int8 and show what float16 may round."""
    if dtype == "float32":
        return as_float32(folded)
    if dtype == "float16":
        return as_float16(folded, X)
    if dtype == "int8":
        return quantise(folded, X)
    accepted = ", ".join(map(repr, DTYPES))
    raise InputError(f"dtype={dtype!r} is unknown; accepted: {accepted}")
