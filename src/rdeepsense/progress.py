"""Displays of progress with the time left: a bar where rich is installed, else plain lines."""

from __future__ import annotations

import sys
import threading
import time
from typing import Protocol, TextIO


class Progress(Protocol):
    """A display of how far a long run has got."""

    def start(self, title: str, total: int, done: int) -> None:
        """Begin a run of `total` units, `done` of which are done already."""

    def update(self, done: int, note: str) -> None:
        """Show that `done` units are done, and a note beside."""

    def close(self) -> None:
        """End the display, whether the run has ended or not."""


class Silent:
    """No display."""

    def start(self, title: str, total: int, done: int) -> None: ...

    def update(self, done: int, note: str) -> None: ...

    def close(self) -> None: ...


class Bar:
    """A rich progress bar with the time left."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(file=stream),
        )

    def start(self, title: str, total: int, done: int) -> None:
        self._bar.start()
        self._task = self._bar.add_task(title, total=total, completed=done, note="")

    def update(self, done: int, note: str) -> None:
        self._bar.update(self._task, completed=done, note=note)

    def close(self) -> None:
        self._bar.stop()


class Lines:
    """A plain line every two seconds, and one at the end."""

    interval = 2.0

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def start(self, title: str, total: int, done: int) -> None:
        self._title, self._total, self._first, self._done = title, total, done, done
        self._begin = self._last = time.monotonic()

    def update(self, done: int, note: str) -> None:
        now = time.monotonic()
        self._done = done
        if now - self._last < self.interval and done < self._total:
            return
        self._last = now
        speed = (done - self._first) / max(now - self._begin, 1e-9)
        left = (self._total - done) / speed if speed else float("nan")
        share = 100 * done / self._total
        print(f"{self._title}: {share:3.0f} %, {left:.0f} s left, {note}", file=self._stream)

    def close(self) -> None:
        self._stream.flush()


def progress_for(verbose: bool, stream: TextIO | None = None) -> Progress:
    """Return the display of a run of seconds or minutes: nothing except at a terminal.

    Only the main thread has one: bars of several threads would overwrite each other.
    """
    stream = stream or sys.stderr
    alone = threading.current_thread() is threading.main_thread()
    if not (verbose and alone and stream.isatty()):
        return Silent()
    try:
        return Bar(stream)
    except ImportError:
        return Lines(stream)


def long_progress(quiet: bool, stream: TextIO | None = None) -> Progress:
    """Return the display of a run of hours, for a log as well: lines where there is no terminal."""
    stream = stream or sys.stderr
    if quiet:
        return Silent()
    return Bar(stream) if stream.isatty() else Lines(stream)
