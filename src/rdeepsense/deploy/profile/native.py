"""A program in C, timed by a loop around it and counted by callgrind.

Timed is the fastest build for this processor, or one for the level of x86 that RDEEPSENSE_LEVEL
names. Counted is one without AVX-512, which valgrind does not know (on x86 -march=x86-64-v3,
elsewhere the compiler's own choice); the counts are of one prediction and the same every time.
"""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rdeepsense.deploy.c.assemble import Assembly
from rdeepsense.deploy.c.build import SHARED, Program, Target, build, need_compiler
from rdeepsense.deploy.c.levels import options
from rdeepsense.deploy.c.text import table

COUNTED = ("-march=x86-64-v3",) if platform.machine() in ("x86_64", "AMD64") else ()
POSIX = "-D_POSIX_C_SOURCE=199309L"  # clock_gettime

C = Path(__file__).parent / "c"


# The function that a stream of windows calls for each interval, by its way.
OF_STREAMS = {"exact": "model_push_interval", "running": "model_run_interval"}


class Native:
    """A built program and the row that it predicts; in a `way` of streams, its first interval."""

    def __init__(self, program: Program, row: NDArray[Any], way: str | None = None) -> None:
        source = program.sources[0]
        self.function = "model_predict" if way is None else OF_STREAMS[way]
        self.program = program
        self.compiler = need_compiler("this form")
        self.row = np.ascontiguousarray(row, dtype=np.float32)
        self.out = np.zeros((len(source.model.results), source.model.outputs), np.float32)
        row_section = {"row.h": f"static {table('float', 'row', self.row)}"}
        switches = {**source.switches, "RUNS": way == "running"}
        if way is not None:
            calls = Assembly("model", switches).text(C / "interval_into.h")
            row_section["predict_into.h"] = calls
        around = Assembly("model", switches, row_section)
        times, once = ({name: around.text(C / name)} for name in ("times.c", "once.c"))
        library, self.executable = build(
            self.compiler,
            program,
            [
                Target(".so", (*SHARED, *options(), POSIX), times, ("-lm",)),
                Target("", ("-std=c99", "-O3", *COUNTED), once, ("-lm",)),
            ],
        )
        self._library = ctypes.CDLL(str(library))
        self._library.model_times.restype = None

    def seconds(self, count: int) -> NDArray[np.float64]:
        """Time each of `count` predictions, in C."""
        times = np.empty(count)
        pointers = (_pointer(a) for a in (self.row, self.out, times))
        self._library.model_times(*pointers, ctypes.c_size_t(count))
        return times

    def instructions(self) -> int | None:
        """Count those of one prediction; None where callgrind is not here or cannot run it."""
        valgrind = shutil.which("valgrind")
        if valgrind is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            options = ["--tool=callgrind", f"--toggle-collect={self.function}"]
            file = f"--callgrind-out-file={Path(folder) / 'counts'}"
            done = subprocess.run(
                [valgrind, *options, file, str(self.executable)], capture_output=True, text=True
            )
        found = re.search(r"Collected : (\d+)", done.stderr)
        return int(found[1]) if found and done.returncode == 0 else None

    def peak_bytes(self) -> int | None:
        """Measure a process that only predicts one row; None where /proc does not say."""
        done = subprocess.run([str(self.executable)], capture_output=True, text=True)
        return 1024 * int(done.stdout) or None


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
