"""Building generated C and calling it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.emit import Source, header
from rdeepsense.deploy.c.export import selftest

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
# -ffast-math without what it links: start-up code that makes subnormal numbers zero, which loading
# the library would do to this whole process.
FAST = ["-ffinite-math-only", "-fno-signed-zeros", "-fno-trapping-math", "-fassociative-math",
        "-freciprocal-math", "-fno-math-errno"]  # fmt: skip


def write(source: Source, folder: Path, X: Any = ()) -> Path:
    """The C of a model in a new folder."""
    folder.mkdir()
    rows = np.asarray(X, dtype=np.float64).reshape(-1, source.model.inputs)
    for name, text in {
        "model.h": header(source),
        "model.c": source.code(),
        "weights.c": source.weights(),
        "selftest.c": selftest(source, rows),
    }.items():
        (folder / name).write_text(text)
    return folder


def run_cc(folder: Path, *arguments: object) -> None:
    done = subprocess.run(list(map(str, arguments)), cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


def library(folder: Path, cc: str, *flags: str) -> ctypes.CDLL:
    """model.c and weights.c as a shared library; the tables are compiled once."""
    if not (folder / "weights.o").exists():
        run_cc(folder, cc, *STRICT, "-fPIC", "-c", "weights.c")
    target = folder / f"{cc}{''.join(flags)}.so"
    run_cc(folder, cc, *STRICT, *flags, "-fPIC", "-shared", "model.c", "weights.o", "-o", target)
    return ctypes.CDLL(str(target))


def predict(
    library: ctypes.CDLL, source: Source, X: NDArray[Any]
) -> tuple[list[int], NDArray[np.float32]]:
    """Status of each row; and (2, rows, outputs), or (rows, classes).

    Of a model with a Laplace part, (3, rows, outputs) or (2, rows, classes).
    """
    rows = np.ascontiguousarray(X, dtype=np.float32)
    parts = len(source.model.results)
    out = np.full((parts, len(rows), source.model.outputs), -7, dtype=np.float32)
    scratch = np.zeros(source.scratch_bytes() // 4 + 1, dtype=np.float32)
    function = getattr(library, f"{source.name}_predict")
    status = [
        function(_pointer(x), *(_pointer(part[row]) for part in out), _pointer(scratch))
        for row, x in enumerate(rows)
    ]
    return status, out[0] if parts == 1 else out


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
