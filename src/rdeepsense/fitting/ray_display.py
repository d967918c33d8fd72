"""The progress of workers elsewhere on the display of the process that asked for the fit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from rdeepsense._progress import Progress, Silent

LOOK_EVERY = 0.5  # seconds

News = tuple[int, int, str]  # steps in all, done, and a note


class Board:
    """The last news of a run, in an actor."""

    def __init__(self) -> None:
        self._news: News | None = None

    def pin(self, news: News) -> None:
        """Replace the news."""
        self._news = news

    def read(self) -> News | None:
        """Return the news, None before there are any."""
        return self._news


@dataclass
class Relay:
    """A display, for a worker, that pins what it is told to the board."""

    board: Any  # a handle of Ray's
    total: int = 0

    def start(self, title: str, total: int, done: int) -> None:
        self.total = total
        self.board.pin.remote((total, done, ""))

    def update(self, done: int, note: str) -> None:
        self.board.pin.remote((self.total, done, note))

    def close(self) -> None: ...


@contextmanager
def relayed(ray: Any, display: Progress, title: str) -> Iterator[Relay | None]:
    """Show what a worker says to the relay; there is none where nothing is shown."""
    if isinstance(display, Silent):
        yield None
        return
    board = ray.remote(num_cpus=0)(Board).remote()
    over = threading.Event()
    watch = threading.Thread(target=_show, args=(ray, board, display, title, over), daemon=True)
    with closing(display):
        watch.start()
        try:
            yield Relay(board)
        finally:
            over.set()
            watch.join()
            ray.kill(board)


def _show(ray: Any, board: Any, display: Progress, title: str, over: threading.Event) -> None:
    begun = False
    last = False
    while not last:
        last = over.wait(LOOK_EVERY)  # then look once more
        news: News | None = ray.get(board.read.remote())
        if news is None:
            continue
        if not begun:
            display.start(title, news[0], news[1])
            begun = True
        display.update(news[1], news[2])
