"""Trainings that count only when they are complete."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rdeepsense.errors import InterruptedTraining


@contextmanager
def completing() -> Iterator[None]:
    """Let Ctrl-C in a training end all: half a training is no result of an experiment."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedTraining)
        try:
            yield
        except InterruptedTraining as stopped:
            raise KeyboardInterrupt from stopped
