"""The number of threads of a step: waking a second one costs more than a small step takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

ONE_THREAD_BELOW = 16_000_000  # multiply-adds of the widest layer, over members and rows


@contextmanager
def sensible_threads(work: int) -> Iterator[None]:
    """Use one thread for small steps; the number that was set comes back afterwards."""
    before = torch.get_num_threads()
    if work < ONE_THREAD_BELOW:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
