"""A joint training as a run of Ray Train: workers, their checkpoints, and lost ones started again.

Ray starts the workers, connects them (gloo, or NCCL between GPUs), keeps the last checkpoint in the
run's storage and, where a worker is lost, starts all of them again from it. The run is named after
a digest of the job: the same job in the same storage goes on where it was, whoever was killed.
"""

from __future__ import annotations

import copy
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from rdeepsense._progress import Progress
from rdeepsense._torch import threads_outside
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.engines import Ray
from rdeepsense.errors import InputError, RDeepSenseError, TrainingError, require
from rdeepsense.fitting.joint_job import JointJob, JointRecord
from rdeepsense.fitting.ray_display import relayed
from rdeepsense.training.checkpoint import Checkpoint
from rdeepsense.training.workers import JointCheckpoint, Peers

LOOK = "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"

Trained = tuple[list[StochasticNetwork], JointRecord]
States = list[dict[str, NDArray[Any]]]


class RayPeers(Peers):
    """Workers of Ray Train; their states lie in a folder that Ray copies to the run's storage."""

    def __init__(self, rank: int, size: int, folder: Path) -> None:
        super().__init__(rank, size)
        self._folder = folder

    def checkpoint(
        self, path: str | os.PathLike[str], fingerprint: str, device: torch.device
    ) -> Checkpoint:
        return JointCheckpoint(path, fingerprint, self, self._hand_over, device)

    def _hand_over(self) -> None:
        ray_train = require("ray.train", "ray")
        ray_train.report({}, checkpoint=ray_train.Checkpoint.from_directory(self._folder))


def worker_count(engine: Ray, ray: Any) -> int:
    """Return how many workers take part; refuse more than the cluster can hold at once."""
    kind = "GPU" if engine.use_gpu else "CPU"
    there = int(ray.cluster_resources().get(kind, 0))
    wanted = there if engine.workers is None else engine.workers
    if not 1 <= wanted <= there:
        raise InputError(
            f"workers = {engine.workers}: the cluster has {there} {kind}s, and each worker takes "
            f"one; accepted: 1 to {there}"
        )
    return wanted


def train_with_ray(
    job: JointJob,
    engine: Ray,
    ray: Any,  # the module, connected
    checkpoint: str | os.PathLike[str] | None,
    display: Progress,
    title: str,
) -> Trained:
    """Run a job on as many workers as it is for; returns what the first of them has."""
    train, torch_train = require("ray.train", "ray"), require("ray.train.torch", "ray")
    begin = time.monotonic()
    with storage_for(engine, ray, checkpoint) as storage, relayed(ray, display, title) as relay:
        run = torch_train.TorchTrainer(
            _work,
            train_loop_config={
                "job": job,
                "threads": threads_outside(),
                "use_gpu": engine.use_gpu,
                "display": relay,
            },
            torch_config=torch_train.TorchConfig(backend="nccl" if engine.use_gpu else "gloo"),
            scaling_config=train.ScalingConfig(num_workers=job.workers, use_gpu=engine.use_gpu),
            run_config=train.RunConfig(
                name=f"fit-{job.fingerprint()[:20]}",
                storage_path=storage,
                failure_config=train.FailureConfig(max_failures=engine.failures),
                checkpoint_config=train.CheckpointConfig(num_to_keep=1),
            ),
        )
        with interruptible(), looking_often():
            try:
                found = run.fit().return_value
            except train.TrainingFailedError as error:
                raise reason_of(error) from error
    if isinstance(found, RDeepSenseError):
        raise found
    states, record, busy = found
    around = time.monotonic() - begin - busy
    networks = [copy.deepcopy(network).eval() for network in job.networks]
    for network, state in zip(networks, states, strict=True):
        network.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    return networks, replace(record, seconds_around=around)


def _work(config: dict[str, Any]) -> tuple[States, JointRecord, float] | RDeepSenseError:
    """Do the part of one worker, in its process; returns the seconds that it took, too."""
    train, torch_train = require("ray.train", "ray"), require("ray.train.torch", "ray")
    begin, job = time.monotonic(), config["job"]
    assert isinstance(job, JointJob)
    context = train.get_context()
    rank, here = context.get_world_rank(), context.get_local_world_size()
    # Ray leaves a worker one thread; those of the process that asked for the fit are shared out.
    torch.set_num_threads(max(1, config["threads"] // here))
    device = torch.device("cpu")
    if config["use_gpu"]:
        device = torch_train.get_device()
        torch.cuda.set_device(device)  # what is sent as an object goes by way of the present one
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = f"state-{rank}"
        if (last := train.get_checkpoint()) is not None:
            with last.as_directory() as saved:
                for file in Path(saved).glob(f"{state}.*"):
                    shutil.copy(file, folder / file.name)
        try:
            networks, record = job.run(
                RayPeers(rank, job.workers, folder),
                folder / f"{state}.bank",
                config["display"] if rank == 0 else None,
                device,
            )
        except TrainingError as error:  # it comes to all alike, and would come again
            return error
    # Ray takes no tensors as what a worker returns.
    states = [{name: value.numpy() for name, value in n.state_dict().items()} for n in networks]
    return states, record, time.monotonic() - begin


@contextmanager
def storage_for(engine: Ray, ray: Any, checkpoint: str | os.PathLike[str] | None) -> Iterator[str]:
    """Give the folder or URL of checkpoints: the engine's, one beside the fit's, or for now."""
    if engine.storage is not None:
        said = os.fspath(engine.storage)
        yield said if "://" in said else os.path.abspath(said)
        return
    addresses = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    if len(addresses) > 1:
        raise InputError(
            f"storage = None: the cluster has {len(addresses)} machines, which need a folder or "
            "URL that all of them see, such as Ray(storage='s3://bucket/fits')"
        )
    if checkpoint is not None:
        yield os.path.abspath(f"{os.fspath(checkpoint)}.ray")
        return
    with tempfile.TemporaryDirectory(prefix="rdeepsense-fit-") as folder:
        yield folder


@contextmanager
def looking_often() -> Iterator[None]:
    """Let Ray look after the workers every half second, where nobody has said how often.

    A checkpoint holds the training up until Ray has looked; by default that is 2 s.
    """
    if LOOK in os.environ:
        yield
        return
    os.environ[LOOK] = "0.5"
    try:
        yield
    finally:
        del os.environ[LOOK]


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a run as Ray does, by leaving the program, but as the interrupt that it is."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit:
        raise KeyboardInterrupt from None
    finally:
        if is_main and before is not None:
            signal.signal(signal.SIGINT, before)


def reason_of(error: Exception) -> Exception:
    """Return the library's own error of a worker, where that is what ended the run."""
    failures: dict[int, Exception] = getattr(error, "worker_failures", {})
    for failure in failures.values():
        if isinstance(failure, RDeepSenseError):
            return failure
    first = str(next(iter(failures.values()), error)).strip().splitlines()
    return RDeepSenseError(
        f"the workers of this fit failed more often than failures = allows: {first[-1]:.300}"
        if first
        else "the workers of this fit failed"
    )
