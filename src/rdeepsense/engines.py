"""Engines: where independent pieces of work run. This process, joblib, or Ray."""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
import pickle
import re
import signal
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from rdeepsense.errors import InputError, RDeepSenseError, require

# --------------------------------------------------------------------------------------------------
# Independent pieces of work, with their results or failures
# --------------------------------------------------------------------------------------------------

Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)


class Work(Protocol[Made]):
    """A piece of work that takes long; other processes and machines must be able to take it."""

    def run(self) -> Made:
        """Do it."""


@dataclass(frozen=True)
class Failure:
    """The reason why a piece of work has no result, on one line."""

    reason: str


class Engine(Protocol):
    """What does pieces of work: processes of this machine, or machines of a cluster."""

    def run_each(self, work: Sequence[Work[Result]]) -> Iterator[tuple[int, Result | Failure]]:
        """Yield the number of each piece and its result as they finish."""


def attempt(work: Work[Result]) -> Result | Failure:
    """Return the result of a piece of work, or the failure of this piece alone."""
    try:
        return work.run()
    except (RDeepSenseError, ValueError, ArithmeticError) as error:
        return Failure(" ".join(str(error).split()) or type(error).__name__)


# --------------------------------------------------------------------------------------------------
# Number of torch threads of concurrent pieces of work
# --------------------------------------------------------------------------------------------------


def attempt_on_one_thread(work: Work[Result]) -> Result | Failure:
    """Return the result of a piece of work, or its failure; torch has one thread meanwhile."""
    from rdeepsense._torch import torch_threads  # late: it needs torch, giving out does not

    with torch_threads(1):
        return attempt(work)


# --------------------------------------------------------------------------------------------------
# Local engine: sequential, or in processes
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Joblib engine, on the backend that the caller selects
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Connection to Ray, with this package on its workers
# --------------------------------------------------------------------------------------------------

SWITCH = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
PATIENCE = 10.0  # seconds
INSTALLED = ("site-packages", "dist-packages")


@contextmanager
def session(ray: Any, address: str | None) -> Iterator[None]:
    """Join the cluster at `address`, or start one of this machine alone; leave it at the end.

    Without an address a cluster that is there is joined. One that is started listens to this
    machine alone.
    """
    if address is not None:
        check_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it reports to its makers
    with ExitStack() as stack:
        try:
            if address is not None or not _joined(ray):
                if address is None:
                    stack.enter_context(loopback())
                _init(ray, "local" if address is None else address)
        except (ConnectionError, ValueError, RuntimeError) as error:
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise RDeepSenseError(f"Ray at address = {address!r} cannot be used: {why}") from error
        stack.callback(ray.shutdown)
        yield


def _joined(ray: Any) -> bool:
    """Join the cluster that RAY_ADDRESS names or that `ray start` started here, if there is one."""
    if os.environ.get("RAY_ADDRESS"):
        _init(ray, None)
        return True
    try:
        _init(ray, "auto")
    except ConnectionError:
        return False
    return True


def _init(ray: Any, address: str | None) -> None:
    ray.init(
        address=address,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env=environment(),
    )


@contextmanager
def loopback() -> Iterator[None]:
    """Let a cluster that is started inside listen to this machine alone.

    Else Ray listens on all interfaces on Linux, and whoever reaches them may run code. It has a
    switch for that, which is off on Linux alone; Ray reads it when it is imported, and its
    processes do when they start.
    """
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before, is_set = getattr(constants, "ENABLE_RAY_CLUSTER", None), SWITCH in os.environ
    if before is None:
        warnings.warn(
            "this version of Ray listens on all network interfaces of this machine: let a firewall "
            "close its ports, or set RAY_AUTH_MODE=token",
            UserWarning,
            stacklevel=2,
        )
    if before is None or is_set:  # whoever set it wants it so
        yield
        return
    os.environ[SWITCH] = "0"
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        del os.environ[SWITCH]
        constants.ENABLE_RAY_CLUSTER = before


def check_reachable(address: str) -> None:
    """Refuse the address of a machine where nobody answers; Ray itself would try for minutes."""
    found = re.fullmatch(r"(?:ray://)?(?P<host>[^/]+):(?P<port>\d{1,5})", address)
    if found is None:
        return  # "auto", or something that Ray refuses at once
    host = found["host"].strip("[]")
    try:
        socket.create_connection((host, int(found["port"])), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise RDeepSenseError(f"Ray at address = {address!r} does not answer: {error}") from error


def environment(package: Path = Path(__file__).parent) -> dict[str, dict[str, str]]:
    """Return what workers need in their environment, whatever version of Ray it is.

    Work that asks for no GPU sees none. A package that runs from a folder of source is found; one
    that is installed is left to each machine, whose folders are for its own Python.
    """
    variables = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}
    if package.parent.name not in INSTALLED:
        variables["PYTHONPATH"] = f"{package.parent}{os.pathsep}${{PYTHONPATH}}"
    return {"env_vars": variables}


# --------------------------------------------------------------------------------------------------
# Pieces of work as Ray tasks, a few more than there are cores
# --------------------------------------------------------------------------------------------------

AHEAD = 2  # tasks given out for each core: the next one lies ready, thousands do not


def run_tasks(
    ray: Any, work: Sequence[Work[Result]], most: int | None, options: Mapping[str, object]
) -> Iterator[tuple[int, Result | Failure]]:
    """Yield the number of each piece and its result as they finish.

    Ray itself runs a task again whose worker or machine was lost, `max_retries` times. Tasks that
    are not finished when nobody waits any longer are ended.

    Parameters
    ----------
    ray : the module, connected.
    most : tasks at a time; None is twice the cores that the cluster has at the moment.
    options : of `ray.remote`.
    """
    task = ray.remote(**options)(_attempt)
    waiting = enumerate(work)
    running: dict[Any, int] = {}
    try:
        while True:
            room = (most or AHEAD * _cores(ray)) - len(running)
            for number, piece in islice(waiting, max(room, 0)):
                # As bytes: Ray would hand out arrays that cannot be written to.
                running[task.remote(ray.cloudpickle.dumps(piece))] = number
            if not running:
                return
            for reference in ray.wait(list(running))[0]:
                number = running.pop(reference)
                yield number, ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # a mistake in the work itself
        raise (error.cause or error) from None
    except ray.exceptions.RayError as error:
        why = (str(error).strip() or "no reason given").splitlines()[0]
        raise RDeepSenseError(
            f"Ray gave up on a piece of work ({type(error).__name__}: {why}); what is finished is "
            "kept, run the same again to go on"
        ) from error
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _cores(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 0)))


def _attempt(pickled: bytes) -> object:
    work: Work[object] = pickle.loads(pickled)
    return attempt_on_one_thread(work)


# --------------------------------------------------------------------------------------------------
# Ray engine: an existing cluster, or the cores of this machine
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Engines by name
# --------------------------------------------------------------------------------------------------

ENGINES = ("local", "joblib", "ray")


def engine_of(engine: str | Engine) -> Engine:
    """Return an engine, of the name "local" (a process for each core), "joblib" or "ray"."""
    if not isinstance(engine, str):
        if not callable(getattr(engine, "run_each", None)):
            raise InputError(f"engine = {engine!r}; accepted: {_accepted()}")
        return engine
    if engine == "local":
        return Local(os.cpu_count() or 1)
    if engine == "joblib":
        return Joblib()
    if engine == "ray":
        require("ray", "ray")
        return Ray()
    raise InputError(f"engine = {engine!r}; accepted: {_accepted()}")


def _accepted() -> str:
    names = ", ".join(map(repr, ENGINES))
    return f"{names}, or an engine such as rds.Ray(address=...)"


# --------------------------------------------------------------------------------------------------
# Public names
# --------------------------------------------------------------------------------------------------

__all__ = ["ENGINES", "Engine", "Failure", "Joblib", "Local", "Ray", "Work", "engine_of"]
