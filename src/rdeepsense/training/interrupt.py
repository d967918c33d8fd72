"""Stopping a run at Ctrl-C between two steps, so that nothing is left half done."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class StopOnInterrupt:
    """A context in which the first Ctrl-C sets `requested`; the second interrupts as usual."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> StopOnInterrupt:
        # Only the main thread may handle signals, and a process told to ignore Ctrl-C does so.
        self._handles = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) != signal.SIG_IGN
        )
        if self._handles:
            self._before = signal.signal(signal.SIGINT, self._stop)
        return self

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handles:
            signal.signal(signal.SIGINT, self._before)
