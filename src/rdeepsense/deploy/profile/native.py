"""A program in C, timed by a loop around it and counted by callgrind.

Timed is the fastest build for this processor. Counted is one without AVX-512, which valgrind does
not know (on x86 -march=x86-64-v3, elsewhere the compiler's own choice); the counts are of one
prediction and the same every time.
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

from rdeepsense.deploy.c.build import LIBRARY, Program, Target, build, need_compiler
from rdeepsense.deploy.c.text import table

COUNTED = ("-march=x86-64-v3",) if platform.machine() in ("x86_64", "AMD64") else ()
POSIX = "-D_POSIX_C_SOURCE=199309L"  # clock_gettime

TIMES = """#include "model.h"

#include <stddef.h>
#include <time.h>

static union {
    float aligned;
    char bytes[MODEL_SCRATCH_BYTES];
} scratch;

/* The seconds of each of count predictions of one row. */
void model_times(const float *x, float *out, double *seconds, size_t count);
void model_times(const float *x, float *out, double *seconds, size_t count)
{
    struct timespec begin, end;
    size_t i;
    for (i = 0; i < count; ++i) {
        clock_gettime(CLOCK_MONOTONIC, &begin);
        model_predict(x, @out@, &scratch);
        clock_gettime(CLOCK_MONOTONIC, &end);
        seconds[i] = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec);
    }
}
"""
MAIN = """#include "model.h"

#include <stdio.h>

static @row@
static float out[2 * MODEL_OUTPUTS];
static union {
    float aligned;
    char bytes[MODEL_SCRATCH_BYTES];
} scratch;

int main(void)
{
    char line[256];
    long kilobytes = 0;
    const int status = model_predict(row, @out@, &scratch);
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "VmHWM: %ld", &kilobytes) != 1) {
    }
    printf("%ld\\n", kilobytes);
    return status;
}
"""


class Native:
    """A built program and the row that it predicts."""

    def __init__(self, program: Program, row: NDArray[Any]) -> None:
        folded = program.sources[0].folded
        out = "out" if folded.is_classifier else "out, out + MODEL_OUTPUTS"
        self.program = program
        self.compiler = need_compiler("this form")
        self.row = np.ascontiguousarray(row, dtype=np.float32)
        self.out = np.zeros((1 if folded.is_classifier else 2, folded.outputs), np.float32)
        main = MAIN.replace("@row@", table("float", "row", self.row)).replace("@out@", out)
        library, self.executable = build(
            self.compiler,
            program,
            [
                Target(
                    ".so", (*LIBRARY, POSIX), {"times.c": TIMES.replace("@out@", out)}, ("-lm",)
                ),
                Target("", ("-std=c99", "-O3", *COUNTED), {"main.c": main}, ("-lm",)),
            ],
        )
        self._library = ctypes.CDLL(str(library))
        self._library.model_times.restype = None

    def seconds(self, count: int) -> NDArray[np.float64]:
        """The time of each of `count` predictions, taken in C."""
        times = np.empty(count)
        pointers = (_pointer(a) for a in (self.row, self.out, times))
        self._library.model_times(*pointers, ctypes.c_size_t(count))
        return times

    def instructions(self) -> int | None:
        """Of one prediction; None where callgrind is not installed or cannot run the program."""
        valgrind = shutil.which("valgrind")
        if valgrind is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            options = ["--tool=callgrind", "--toggle-collect=model_predict"]
            file = f"--callgrind-out-file={Path(folder) / 'counts'}"
            done = subprocess.run(
                [valgrind, *options, file, str(self.executable)], capture_output=True, text=True
            )
        found = re.search(r"Collected : (\d+)", done.stderr)
        return int(found[1]) if found and done.returncode == 0 else None

    def peak_bytes(self) -> int | None:
        """Of a process that does nothing but predict one row; None where /proc does not say."""
        done = subprocess.run([str(self.executable)], capture_output=True, text=True)
        return 1024 * int(done.stdout) or None


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
