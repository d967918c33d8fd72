"""How many threads a step deserves: waking a second one costs more than a small step takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

ONE_THREAD_BELOW = 250_000  # activations of one layer, over all members and rows of a batch


@contextmanager
def sensible_threads(activations: int) -> Iterator[None]:
    """One thread for small steps; the number that was set comes back afterwards."""
    before = torch.get_num_threads()
    if activations < ONE_THREAD_BELOW:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
