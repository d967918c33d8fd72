"""Pieces of work on this machine: one after the other, or in processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from rdeepsense.engines.work import Failure, Result, Work, attempt
from rdeepsense.errors import RDeepSenseError


@dataclass(frozen=True)
class Local:
    """Processes of this machine, of one thread each; with one job, this process itself."""

    jobs: int = 1

    def run_each(self, work: Sequence[Work[Result]]) -> Iterator[tuple[int, Result | Failure]]:
        """Yield the number of each piece and its result as they finish."""
        if self.jobs == 1 or len(work) < 2:
            for number, piece in enumerate(work):
                yield number, attempt(piece)
            return
        # spawn: a forked child of a process with threads, as torch has them, may hang.
        context = multiprocessing.get_context("spawn")
        others = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(min(self.jobs, len(work)), context, initializer=_prepare_worker)
        try:
            futures: dict[Future[Result | Failure], int] = {
                pool.submit(attempt, piece): number for number, piece in enumerate(work)
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise RDeepSenseError(
                "a worker process ended before its time (out of memory?); what is finished is "
                "kept, run the same again to go on"
            ) from error
        except (KeyboardInterrupt, GeneratorExit):  # nobody waits for what is running
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


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
