"""A folded model run by its own generated C, built once and kept in the user's cache folder."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.device.c99.header import header
from rdeepsense.device.c99.measure import compiler
from rdeepsense.device.c99.networks import as_float32
from rdeepsense.device.c99.source import Source
from rdeepsense.device.folded import Folded
from rdeepsense.errors import InputError

FLAGS = ("-std=c99", "-O3", "-march=native", "-shared", "-fPIC")

# The scratch lies on the stack, so that any number of threads may call.
ROWS = """
#include <stddef.h>

int model_rows(const float *x, float *out, size_t rows);
int model_rows(const float *x, float *out, size_t rows)
{
    union {
        float aligned;
        char bytes[MODEL_SCRATCH_BYTES];
    } scratch;
    size_t r;
    int status, worst = MODEL_OK;
    for (r = 0; r < rows; ++r) {
        status = model_predict(x + r * MODEL_INPUTS, @outputs@, &scratch);
        worst = status > worst ? status : worst;
    }
    return worst;
}
"""
REGRESSION = "out + r * MODEL_OUTPUTS, out + (rows + r) * MODEL_OUTPUTS"
CLASSES = "out + r * MODEL_OUTPUTS"


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
        shape = (len(X), self.outputs) if self.is_classifier else (2, len(X), self.outputs)
        out = np.empty(shape, dtype=np.float32)
        if self.rows(_address(X), _address(out), len(X)):
            super().check(X)  # says which value is NaN or infinite
        return out

    def caller(self, x: NDArray[np.float32], out: NDArray[np.float32]) -> Callable[[], int]:
        """A function without arguments that predicts the row in `x` and leaves the result in `out`.

        Both arrays are used where they lie, so a loop that fills x and reads out copies nothing.
        x holds `inputs` float32, out 2 x `outputs` of them (means, then stds) or one for each
        class. The function returns the C status: 0, 1 for NaN, 2 for out of range.
        """
        size = self.outputs * (1 if self.is_classifier else 2)
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
    cc = compiler()
    if cc is None:
        raise InputError("compile=True needs a C compiler: none of cc, gcc, clang was found")
    source = Source(folded, as_float32(folded))
    outputs = CLASSES if folded.is_classifier else REGRESSION
    files = {
        "model.h": header(source),
        "model.c": source.code() + ROWS.replace("@outputs@", outputs),
    }
    library = ctypes.CDLL(str(_built(cc, files, source)))
    rows = library.model_rows
    rows.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    rows.restype = ctypes.c_int
    return Compiled(**vars(folded), rows=rows)


def _built(cc: str, files: dict[str, str], source: Source) -> Path:
    """The shared library of this text and these numbers, by this compiler for this processor."""
    digest = hashlib.sha256("\0".join([cc, _processor(), *FLAGS, *files.values()]).encode())
    for table in source.tables:
        digest.update(np.ascontiguousarray(table.values).tobytes())
    cache = _cache_folder()
    target = cache / f"{digest.hexdigest()[:32]}.so"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=cache) as name:
        folder = Path(name)
        for file, text in {**files, "weights.c": source.weights()}.items():
            (folder / file).write_text(text)
        command = [cc, *FLAGS, "model.c", "weights.c", "-o", "model.so"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise InputError(f"{cc} could not compile the model: {done.stderr.strip()[:300]}")
        os.replace(folder / "model.so", target)
    return target


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    if sys.platform == "darwin" and not home:
        return Path.home() / "Library" / "Caches" / "rdeepsense"
    return (Path(home) if home else Path.home() / ".cache") / "rdeepsense"


def _processor() -> str:
    """What -march=native depends on: a cache folder may be shared by several machines."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() + platform.node()
    return "".join(
        sorted(
            {line for line in text.splitlines() if line.startswith(("flags", "Feat", "model name"))}
        )
    )


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(_address(array))


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
