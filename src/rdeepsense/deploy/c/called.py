"""A model's C in a shared library, called through ctypes; numpy is all that it needs."""

from __future__ import annotations

import ctypes
import functools
import operator
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.levels import FUNCTION, LEVELS, chosen
from rdeepsense.deploy.folded.facts import Facts
from rdeepsense.deploy.folded.runner import MeanStd, Outputs, Probabilities
from rdeepsense.errors import InputError
from rdeepsense.status import Statuses

ROWS_OF_A_THREAD = 16_384  # fewer are not worth one
CFunction = Callable[..., int]  # ctypes converts what is given


@dataclass(frozen=True)
class CompiledRunner:
    """The C of a folded model, in float32, called through ctypes."""

    facts: Facts
    rows: CFunction = field(compare=False, repr=False)
    has_epistemic: bool = False
    library: Path | None = None

    @classmethod
    def of(cls, library: Path, facts: Facts, has_epistemic: bool = False) -> CompiledRunner:
        """Take the function of a library that was built for this machine."""
        return cls(facts, _rows_function(library), has_epistemic, library)

    def run(self, X: NDArray[Any]) -> Outputs:
        with np.errstate(over="ignore"):
            rows: NDArray[np.float32] = np.ascontiguousarray(X, dtype=np.float32)
        out = np.empty((self.parts, len(rows), self.facts.outputs), dtype=np.float32)
        status = np.empty(len(rows), dtype=np.uint8)
        all_flags = self._into(rows, out, status)
        if all_flags and (np.isinf(rows) & np.isfinite(X)).any():
            self.facts.refuse(rows)  # says which value float32 cannot hold
        epistemic = out[-1] if self.has_epistemic else None
        if self.facts.is_classifier:
            return Probabilities(out[0], epistemic, status)
        return MeanStd(out[0], out[1], epistemic, status)

    def _into(self, rows: NDArray[np.float32], out: NDArray[np.float32], status: Statuses) -> int:
        """Predict rows where they lie, large batches in several threads; returns all flags."""
        count = len(rows)
        threads = min(available(), count // ROWS_OF_A_THREAD)

        def part(begin: int, end: int) -> int:
            given, made, told = rows[begin:], out[:, begin:], status[begin:]
            apart = count * self.facts.outputs
            return self.rows(_address(given), _address(made), apart, _address(told), end - begin)

        if threads < 2:
            return part(0, count)
        ends = [count * k // threads for k in range(threads + 1)]
        with ThreadPoolExecutor(threads) as pool:
            return functools.reduce(operator.or_, pool.map(part, ends, ends[1:]))

    @property
    def parts(self) -> int:
        """How many arrays of `outputs` numbers come out."""
        return (1 if self.facts.is_classifier else 2) + self.has_epistemic

    def caller(self, x: NDArray[np.float32], out: NDArray[np.float32]) -> Callable[[], int]:
        """Return a function that predicts the row in `x` and leaves the result in `out`.

        Both arrays are used where they lie, so a loop that fills x and reads out copies nothing.
        x holds `inputs` float32, out 2 x `outputs` of them (means, then stds) or one for each
        class, with a laplace `outputs` more of them (epistemic). The function returns the C
        status, a number of `rdeepsense.Status`.
        """
        size = self.facts.outputs * self.parts
        inputs = prod((*self.facts.window, self.facts.inputs))
        for name, array, wanted in (("x", x, inputs), ("out", out, size)):
            if array.dtype != np.float32 or array.size != wanted or not array.flags.c_contiguous:
                raise InputError(f"{name} must be {wanted} contiguous float32 numbers")
        status = np.empty(1, dtype=np.uint8)
        given, made, told = (_pointer(array) for array in (x, out, status))
        apart, one = ctypes.c_size_t(self.facts.outputs), ctypes.c_size_t(1)
        # The arrays are bound so that they live as long as the function does.
        return functools.partial(
            _call, self.rows, (given, made, apart, told, one), (x, out, status)
        )


def _call(rows: CFunction, arguments: tuple[object, ...], _: object) -> int:
    return rows(*arguments)


def available() -> int:
    """Count the processors that this process may use; OMP_NUM_THREADS says so for all libraries."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdecimal():
        return max(1, int(told))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _rows_function(path: Path) -> CFunction:
    library = ctypes.CDLL(str(path))
    held = {name for name in LEVELS if hasattr(library, f"{FUNCTION}_{name}")}
    level = f"_{chosen(library.model_levels(), held)}" if held else ""
    rows: CFunction = getattr(library, f"{FUNCTION}{level}")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    rows.argtypes = (pointer, pointer, size, pointer, size)  # type: ignore[attr-defined]
    rows.restype = ctypes.c_int  # type: ignore[attr-defined]
    return rows


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(_address(array))


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
