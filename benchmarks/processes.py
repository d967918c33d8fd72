"""No measurement by itself: seconds, CPU seconds and peak memory of a process and its children."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

EVERY = 0.02  # seconds between two looks at the memory


class Measured(NamedTuple):
    """What a command took; `peak` is of its largest process, `together` of all at one time."""

    seconds: float
    cpu: float
    peak: float  # MiB
    together: float

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s, CPU {self.cpu:.1f} s, peak {self.peak:.0f} MiB"


def measured(command: Sequence[str], env: Mapping[str, str] | None = None) -> Measured:
    """Run a command to its end."""
    before, start = os.times(), time.perf_counter()
    process = subprocess.Popen(command, env=None if env is None else dict(env))
    peak = together = 0.0
    while process.poll() is None:
        sizes = [_size(number) for number in _tree(process.pid)]
        peak, together = max(peak, *sizes), max(together, sum(sizes))
        time.sleep(EVERY)
    seconds, after = time.perf_counter() - start, os.times()
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    cpu = after.children_user + after.children_system
    return Measured(seconds, cpu - before.children_user - before.children_system, peak, together)


def _tree(number: int) -> list[int]:
    try:
        text = Path(f"/proc/{number}/task/{number}/children").read_text()
    except OSError:
        return [number]
    return [number, *(one for child in text.split() for one in _tree(int(child)))]


def _size(number: int) -> float:
    """Return the MiB that a process has in memory now; 0 where it has ended."""
    try:
        pages = int(Path(f"/proc/{number}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
