"""A Ray cluster: the one that is there, or one of this machine's cores alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rdeepsense.engines.ray_session import session
from rdeepsense.engines.ray_tasks import run_tasks
from rdeepsense.engines.work import Failure, Result, Work
from rdeepsense.errors import InputError, require


@dataclass(frozen=True)
class Ray:
    """A Ray cluster as the place where work is done (extra `ray`).

    Every machine of a cluster has the same version of this package installed. On one machine,
    workers find a package that runs from a folder of source by themselves.

    Parameters
    ----------
    workers : how many take part in one fit or one prediction, or how many pieces of work are given
        out at a time; None takes all cores.
    use_gpu : whether a worker has a GPU of its own.
    address : of a cluster, such as "auto" or "ray://head:10001". None takes the cluster that
        this program has joined, that RAY_ADDRESS names or that `ray start` has started on this
        machine, and otherwise begins one of this machine's cores for the time being.
    storage : a folder or URL that all machines see, for checkpoints; needed beyond one machine.
    failures : how many lost workers a run outlives, or each piece of its own where a run is many.
    """

    workers: int | None = None
    use_gpu: bool = False
    address: str | None = None
    storage: str | os.PathLike[str] | None = None
    failures: int = 3

    def __post_init__(self) -> None:
        if self.workers is not None and not (isinstance(self.workers, int) and self.workers >= 1):
            raise InputError(f"workers = {self.workers!r}; accepted: None or a number from 1 on")
        if not (isinstance(self.failures, int) and self.failures >= 0):
            raise InputError(f"failures = {self.failures!r}; accepted: a number from 0 on")

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Give the `ray` module, connected; a connection that was made here is ended again."""
        ray = require("ray", "ray")
        if ray.is_initialized():
            yield ray
            return
        with session(ray, self.address):
            yield ray

    def run_each(self, work: Sequence[Work[Result]]) -> Iterator[tuple[int, Result | Failure]]:
        """Yield the number of each piece and its result as they finish; each has a core."""
        if not work:
            return
        options = {
            "num_cpus": 1,
            "num_gpus": int(self.use_gpu),
            "max_retries": self.failures,
            "retry_exceptions": False,
        }
        with self.connected() as ray:
            yield from run_tasks(ray, work, self.workers, options)
