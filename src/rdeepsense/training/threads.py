"""The number of threads of a step: waking a second one costs more than a small step takes."""

from __future__ import annotations

from contextlib import AbstractContextManager

from rdeepsense.process_wide import threads_outside, torch_threads

ONE_THREAD_BELOW = 16_000_000  # multiply-adds of the widest layer, over members and rows


def sensible_threads(work: int, sharing: int = 1) -> AbstractContextManager[None]:
    """Use one thread for small steps; the number that was set comes back afterwards.

    Where several runs go on at the same time, those `sharing` the cores have a part each.
    """
    return torch_threads(1 if work < ONE_THREAD_BELOW else max(1, threads_outside() // sharing))
