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
    """Plain lines: one at once, one every two seconds while units end, and one at the end.

    Where a unit takes long, a line every ten seconds says that the run goes on. With `after`,
    nothing is printed in the first seconds since the display was made, later a line every ten
    seconds and none at the end; one display may then serve several runs, one after the other.
    """

    interval, still = 2.0, 10.0

    def __init__(self, stream: TextIO, after: float = 0.0) -> None:
        self._stream, self._after = stream, after
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._watch: threading.Thread | None = None
        self._born, self._last = time.monotonic(), float("-inf")

    def start(self, title: str, total: int, done: int) -> None:
        self._title, self._total, self._first, self._done = title, total, done, done
        self._begin = self._ended = time.monotonic()
        self._note = ""
        self._said = False
        self._over.clear()
        self._watch = threading.Thread(target=self._keep_saying, daemon=True)
        self._watch.start()

    def update(self, done: int, note: str) -> None:
        with self._lock:
            if done > self._done:
                self._ended = time.monotonic()
            self._done, self._note = done, note
            if self._is_due():
                self._say()

    def close(self) -> None:
        self._over.set()
        if self._watch is not None:
            self._watch.join()
        self._stream.flush()

    def _is_due(self) -> bool:
        now = time.monotonic()
        if self._after:
            return now - self._born >= self._after and now - self._last >= self.still
        return not self._said or now - self._last >= self.interval or self._done >= self._total

    def _keep_saying(self) -> None:
        while not self._over.wait(min(self.still / 4, self._after or self.still)):
            with self._lock:
                begun = self._said and time.monotonic() - self._last >= self.still
                if self._is_due() if self._after else begun:
                    self._say(begun=begun)

    def _say(self, begun: bool = False) -> None:
        """Print a line; of a unit that has begun long ago, the time left is not known."""
        self._last, self._said = time.monotonic(), True
        so_far, new = self._last - self._begin, self._done - self._first
        time_text = f"{so_far:.0f} s so far"
        if new and (self._after or not begun):
            left = (self._total - self._done) * (self._ended - self._begin) / new
            left -= self._last - self._ended
            if left >= 0 or self._done >= self._total:
                time_text = f"{max(left, 0):.0f} s left"
        share = 100 * self._done / self._total
        note = f", {self._note}" if self._note else ""
        print(f"{self._title}: {share:3.0f} %, {time_text}{note}", file=self._stream)
        self._stream.flush()


def progress_for(verbose: bool, stream: TextIO | None = None) -> Progress:
    """Return the display of a run of seconds or minutes: a bar at a terminal.

    Elsewhere, as in a notebook or a pipe, it is a line now and then for what takes longer than two
    seconds. Only the main thread has one: bars of several threads would overwrite each other.
    """
    stream = stream or sys.stderr
    if not (verbose and threading.current_thread() is threading.main_thread()):
        return Silent()
    if not stream.isatty():
        return Lines(stream, after=2.0)
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
