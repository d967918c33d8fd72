"""Pieces of work through joblib: on the backend that the caller has chosen for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from rdeepsense.engines.one_thread import attempt_on_one_thread
from rdeepsense.engines.work import Failure, Result, Work
from rdeepsense.errors import InputError, RDeepSenseError


@dataclass(frozen=True)
class Joblib:
    """Whatever backend of joblib is active where work begins: Dask's, Spark's, Ray's.

    `with joblib.parallel_config(backend="dask"): ...` chooses one; without it joblib takes
    processes of this machine (loky). Each piece of work has one thread of torch.

    Parameters
    ----------
    jobs : pieces at a time; -1 is one for each core. None takes the number that
        `parallel_config` was given, and -1 outside of it.
    """

    jobs: int | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and not (isinstance(self.jobs, int) and self.jobs != 0):
            raise InputError(f"jobs = {self.jobs!r}; accepted: None, -1 or a number from 1 on")

    def run_each(self, work: Sequence[Work[Result]]) -> Iterator[tuple[int, Result | Failure]]:
        """Yield the number of each piece and its result: as they finish, where the backend can."""
        backend, around = get_active_backend()
        jobs = self.jobs or around or -1
        parallel = Parallel(
            n_jobs=jobs,
            return_as="generator_unordered" if backend.supports_return_generator else "list",
            batch_size=1,  # a piece takes long; one that is done should not wait for the next
            max_nbytes=None,  # arrays mapped from files cannot be written to, others can
        )
        pieces = (delayed(_numbered)(number, piece) for number, piece in enumerate(work))
        try:
            yield from parallel(pieces)
        except BrokenExecutor as error:
            raise RDeepSenseError(
                "a worker of joblib ended before its time (out of memory?); what is finished is "
                "kept, run the same again to go on"
            ) from error


def _numbered(number: int, work: Work[Result]) -> tuple[int, Result | Failure]:
    return number, attempt_on_one_thread(work)
