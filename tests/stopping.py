"""Ways to break a training off: as a crash would, or as Ctrl-C does; and what to compare then."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from rdeepsense._progress import Silent
from rdeepsense.modelfile import tensors as model_file


class StopError(Exception):
    """Raised in the middle of a training."""


class StopAt(Silent):
    def __init__(self, step: int) -> None:
        self._step = step

    def update(self, done: int, note: str) -> None:
        if done == self._step:
            raise StopError


class Steps:
    """Counts the steps of all trainings, and presses Ctrl-C after one of them.

    `accelerate` is to stand in the place of the loop's.
    """

    def __init__(self, press_at: int | None = None) -> None:
        self.press_at, self.taken = press_at, 0
        self._lock = threading.Lock()  # trainings may go on at the same time

    def accelerate(self, step: Callable[[], None], *_: object) -> Callable[[], None]:
        def take() -> None:
            step()
            with self._lock:
                self.taken += 1
                press = self.taken == self.press_at
            if press:
                os.kill(os.getpid(), signal.SIGINT)

        return take


def content(model: object, path: Path) -> tuple[dict[str, object], dict[str, bytes]]:
    """Return all that a model's file says, but for how long training took and when it went on."""
    model.save(path)  # type: ignore[attr-defined]
    header, tensors = model_file.read(path)
    for changing in ("seconds", "resumed_at"):
        header["training"].pop(changing, None)
    del header["sha256"]
    return header, {name: tensor.tobytes() for name, tensor in tensors.items()}
