"""Runs at the same time, each in a thread of Python; torch computes outside of Python's lock.

All share one `StopOnInterrupt`: signals reach the main thread alone, which waits meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

from rdeepsense.training.interrupt import StopOnInterrupt

# Seconds: on some systems no signal is handled while the main thread waits.
LOOK_EVERY = 0.1

Result = TypeVar("Result")


def side_by_side(
    runs: Sequence[Callable[[], Result]], workers: int, stop: StopOnInterrupt
) -> list[Result]:
    """Return the results of all runs that were begun, the first ones, in their order.

    None is begun once `stop` is requested. A run that fails stops the others, and its error is
    raised when they have ended.
    """
    if workers == 1:
        results = []
        for run in runs:
            if stop.requested:
                break
            results.append(run())
        return results
    with ThreadPoolExecutor(workers, thread_name_prefix="rdeepsense-train") as pool:
        futures = [pool.submit(copy_context().run, _unless_stopped, run, stop) for run in runs]
        pending = set(futures)
        try:
            while pending:
                ended, pending = wait(pending, LOOK_EVERY, FIRST_EXCEPTION)
                if any(future.exception() for future in ended):
                    stop.requested = True
        except BaseException:
            stop.requested = True  # the threads end after the step that they are at
            raise
    return [result for future in futures for result in future.result()]


def _unless_stopped(run: Callable[[], Result], stop: StopOnInterrupt) -> list[Result]:
    return [] if stop.requested else [run()]
