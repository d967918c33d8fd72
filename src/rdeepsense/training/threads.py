"""The number of threads of a step: waking a second one costs more than a small step takes."""

from __future__ import annotations

from contextlib import AbstractContextManager

from rdeepsense.process_wide import torch_threads

ONE_THREAD_BELOW = 16_000_000  # multiply-adds of the widest layer, over members and rows


def sensible_threads(work: int) -> AbstractContextManager[None]:
    """Use one thread for small steps; the number that was set comes back afterwards."""
    return torch_threads(1 if work < ONE_THREAD_BELOW else None)
