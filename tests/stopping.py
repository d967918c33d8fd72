"""A progress that breaks a training off at a step, as a crash would."""

from rdeepsense.progress import Silent


class StopError(Exception):
    """Raised in the middle of a training."""


class StopAt(Silent):
    def __init__(self, step: int) -> None:
        self._step = step

    def update(self, done: int, note: str) -> None:
        if done == self._step:
            raise StopError
