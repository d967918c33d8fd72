"""One display for several runs that go on at the same time or one after the other."""

from __future__ import annotations

import threading

from rdeepsense.progress import Progress


class JointProgress:
    """A display of the sum of all runs' steps; each run has a `part` of it."""

    def __init__(self, display: Progress, title: str, runs: int) -> None:
        self._display, self._title = display, title
        self._done = [0] * runs
        self._lock = threading.Lock()
        self._started = False

    def part(self, number: int) -> Progress:
        """Return the display of one of the runs."""
        return _Part(self, number)

    def start(self, number: int, total: int, done: int) -> None:
        """Begin with the first run that begins; the others are as long."""
        with self._lock:
            self._done[number] = done
            if not self._started:
                self._started = True
                self._display.start(self._title, total * len(self._done), sum(self._done))

    def update(self, number: int, done: int, note: str) -> None:
        """Show a run's steps with those of the others."""
        with self._lock:
            self._done[number] = done
            self._display.update(sum(self._done), note)

    def close(self) -> None:
        """End the display."""
        self._display.close()


class _Part:
    """What a run takes for a display of its own; it does not end the common one."""

    def __init__(self, whole: JointProgress, number: int) -> None:
        self._whole, self._number = whole, number

    def start(self, title: str, total: int, done: int) -> None:
        self._whole.start(self._number, total, done)

    def update(self, done: int, note: str) -> None:
        self._whole.update(self._number, done, note)

    def close(self) -> None: ...
