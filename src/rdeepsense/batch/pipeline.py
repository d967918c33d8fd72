"""Chunks through a few threads, in order, with a bounded number of them under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")
AHEAD = 1  # chunks that wait, beside those that threads are at


def in_order(make: Callable[[Item], Made], items: Iterable[Item], threads: int) -> Iterator[Made]:
    """Yield make(item) of each item, in the order of the items.

    Reading happens here, in the caller's thread, and so does whatever it does with the result:
    with two threads four chunks are in memory at most.
    """
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Made]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(make, item))
            if len(waiting) > threads + AHEAD - 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
