"""One case under guard: its time, and the memory that it took at most."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rdeepsense.errors import RDeepSenseError

LONGEST = 5.0  # seconds of computing, which do not depend on what else the machine does
WAITING = 60.0  # seconds on the clock, for a case that waits for something
MIB = 1 << 20
STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Hang(BaseException):
    """A case that took too long; no `except Exception` may stop it."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case: refused by an error of ours, accepted, or foreign."""

    refused: RDeepSenseError | None
    foreign: BaseException | None
    result: object
    seconds: float
    growth: int  # bytes

    @property
    def accepted(self) -> bool:
        return self.refused is None and self.foreign is None


def guarded(use: Callable[[], object]) -> Outcome:
    """Call it, stopped after a while; errors come back instead of up."""
    refused: RDeepSenseError | None = None
    foreign: BaseException | None = None
    result: object = None
    before = _forget_peak()
    handlers = {number: signal.signal(number, _stop) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    begin = time.process_time()
    try:
        result = use()
    except RDeepSenseError as error:
        refused = error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        foreign = error
    finally:
        seconds = time.process_time() - begin
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return Outcome(refused, foreign, result, seconds, max(0, _read("VmHWM") - before))


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    seconds = LONGEST if number == signal.SIGPROF else WAITING
    raise Hang(f"longer than {seconds:g} s")


def _forget_peak() -> int:
    """Let the kernel count the peak anew; returns what is resident now. Linux alone has it."""
    if FORGET.exists():
        FORGET.write_text("5")
    return _read("VmRSS")


def _read(name: str) -> int:
    if not STATUS.exists():
        return 0
    found = re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text())
    return int(found[1]) * 1024 if found else 0
