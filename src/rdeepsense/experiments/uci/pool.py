"""Cells one after the other, or in processes; each with its result or with what went wrong."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol, TypeVar

from rdeepsense.errors import RDeepSenseError


class Runs(Protocol):
    """A piece of work that takes long and gives plain data."""

    def run(self) -> dict[str, Any]: ...


Cell = TypeVar("Cell", bound=Runs)
Result = dict[str, Any] | str  # a text says what went wrong


def run_each(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, Result]]:
    """Each cell with its result as they finish, in `jobs` processes of one thread each."""
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield cell, attempt(cell)
        return
    # spawn: a forked child of a process with threads, as torch has them, may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(cells)), context, initializer=_prepare_worker)
    try:
        futures: dict[Future[Result], Cell] = {pool.submit(attempt, cell): cell for cell in cells}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise RDeepSenseError(
            "a process of --jobs ended before its time (out of memory?); finished cells are kept, "
            "run the same command again to go on"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def attempt(cell: Runs) -> Result:
    """The cell's result; a failure of this cell alone as text, on one line."""
    try:
        return cell.run()
    except (RDeepSenseError, ValueError, ArithmeticError) as error:
        return " ".join(str(error).split()) or type(error).__name__


def _prepare_worker() -> None:
    """One thread, and no life after the parent: a pool's worker would outlast a killed one."""
    import torch

    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
