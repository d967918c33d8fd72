"""Pieces of work one after the other, or in processes; each with its result or its failure."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rdeepsense.errors import RDeepSenseError

Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)


class Work(Protocol[Made]):
    """A piece of work that takes long."""

    def run(self) -> Made:
        """Do it."""


@dataclass(frozen=True)
class Failure:
    """The reason why a piece of work has no result, on one line."""

    reason: str


def run_each(work: Sequence[Work[Result]], jobs: int) -> Iterator[tuple[int, Result | Failure]]:
    """Yield the number of each piece and its result as they finish.

    They run in `jobs` processes of one thread each; here, one by one, where one is enough.
    """
    if jobs == 1 or len(work) < 2:
        for number, piece in enumerate(work):
            yield number, attempt(piece)
        return
    # spawn: a forked child of a process with threads, as torch has them, may hang.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(jobs, len(work)), context, initializer=_prepare_worker)
    try:
        futures: dict[Future[Result | Failure], int] = {
            pool.submit(attempt, piece): number for number, piece in enumerate(work)
        }
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise RDeepSenseError(
            "a worker process ended before its time (out of memory?); what is finished is kept, "
            "run the same again to go on"
        ) from error
    except (KeyboardInterrupt, GeneratorExit):  # nobody waits for what is running
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def attempt(work: Work[Result]) -> Result | Failure:
    """Return the result of a piece of work, or the failure of this piece alone."""
    try:
        return work.run()
    except (RDeepSenseError, ValueError, ArithmeticError) as error:
        return Failure(" ".join(str(error).split()) or type(error).__name__)


def _prepare_worker() -> None:
    """Take one thread, and end with the parent: a pool's worker would outlast a killed one.

    Ctrl-C at a terminal goes to all its processes; the parent then ends its workers by itself.
    """
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
