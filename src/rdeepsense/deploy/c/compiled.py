"""A folded model run by its own generated C, built once and kept in the user's cache folder."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.build import LIBRARY, Program, Target, build, need_compiler
from rdeepsense.deploy.c.header import header
from rdeepsense.deploy.c.source import Source
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.networks import as_float32
from rdeepsense.errors import InputError


@dataclass(frozen=True)
class Compiled(Folded):
    """A folded model whose passes are C, in float32."""

    rows: Any = field(default=None, compare=False, repr=False)

    def check(self, X: Any) -> NDArray[Any]:
        """X as contiguous float32 rows; their values are looked at by the C."""
        try:
            rows: NDArray[Any] = np.ascontiguousarray(X, dtype=np.float32)
        except (TypeError, ValueError):
            return super().check(X)
        return rows if rows.ndim == 2 and rows.shape[1] == self.inputs else super().check(X)

    def forward(self, X: NDArray[Any]) -> NDArray[Any]:
        out = self._run(X)
        return out[0] if self.is_classifier else out[:2]

    def epistemic(self, X: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = self._run(X)[-1]
        return found

    def _run(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """All that the C gives, (means and stds, or probabilities; epistemic; rows, outputs)."""
        out = np.empty((_parts(self), len(X), self.outputs), dtype=np.float32)
        if self.rows(_address(X), _address(out), len(X)):
            super().check(X)  # says which value is NaN or infinite
        return out

    def caller(self, x: NDArray[np.float32], out: NDArray[np.float32]) -> Callable[[], int]:
        """A function without arguments that predicts the row in `x` and leaves the result in `out`.

        Both arrays are used where they lie, so a loop that fills x and reads out copies nothing.
        x holds `inputs` float32, out 2 x `outputs` of them (means, then stds) or one for each
        class, with a doubt `outputs` more of them (epistemic). The function returns the C status:
        0, 1 for NaN, 2 for out of range.
        """
        size = self.outputs * _parts(self)
        for name, array, wanted in (("x", x, self.inputs), ("out", out, size)):
            if array.dtype != np.float32 or array.size != wanted or not array.flags.c_contiguous:
                raise InputError(f"{name} must be {wanted} contiguous float32 numbers")
        # The arrays are bound so that they live as long as the function does.
        pointers = (_pointer(x), _pointer(out), ctypes.c_size_t(1))
        return functools.partial(_call, self.rows, *pointers, (x, out))


def _call(rows: Any, x: Any, out: Any, count: Any, _: Any) -> int:
    status: int = rows(x, out, count)
    return status


def compiled(folded: Folded) -> Compiled:
    """Build the C of a model, or find it in the cache."""
    cc = need_compiler("compile=True")
    source = Source(folded, as_float32(folded))
    rows = Target(".so", LIBRARY, {"rows.c": source.assembled("rows.c")})
    (path,) = build(cc, single(source), [rows])
    return Compiled(**vars(folded), rows=_rows_function(path))


def single(source: Source) -> Program:
    """The program that is a model as exported."""
    return Program({"model.h": header(source), "model.c": source.code()}, (source,))


def _parts(folded: Folded) -> int:
    return (1 if folded.is_classifier else 2) + (folded.doubt is not None)


def _rows_function(path: Path) -> Any:
    rows = ctypes.CDLL(str(path)).model_rows
    rows.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    rows.restype = ctypes.c_int
    return rows


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(_address(array))


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
