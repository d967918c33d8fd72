"""A form in which a model can run, ready to be measured."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Seconds = Callable[[int], NDArray[np.float64]]

# What a process that runs one prediction reads of itself at its end.
_PEAK = """
import re
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@dataclass(frozen=True)
class ProfileCandidate:
    """A form of the model; `seconds(n)` runs n predictions and gives the time of each."""

    name: str
    what: str
    seconds: Seconds
    weight_bytes: int
    multiply_adds: int
    instructions: Callable[[], int | None] = lambda: None
    peak_bytes: Callable[[], int | None] = lambda: None
    off_by: float | None = None  # how far its mean is from the folded model's, in stds


@dataclass(frozen=True)
class Missing:
    """A form that cannot run here, and why."""

    name: str
    reason: str

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "available": False, "reason": self.reason}


def timed(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Seconds:
    """Time each call from Python."""

    def seconds(count: int) -> NDArray[np.float64]:
        times = np.empty(count)
        for k in range(count):
            begin = clock()
            call()
            times[k] = clock() - begin
        return times

    return seconds


def peak_of_python(script: str, *arguments: object) -> int | None:
    """Measure peak memory of a Python process that runs a script; None where /proc is not there."""
    command = [sys.executable, "-c", f"{script}{_PEAK}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return 1024 * int(done.stdout) if done.returncode == 0 else None
