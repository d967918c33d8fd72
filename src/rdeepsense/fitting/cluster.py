"""Joint training of one model by several workers, on this machine or on a Ray cluster."""

from __future__ import annotations

import copy
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from numpy.typing import NDArray

from rdeepsense._progress import Progress, Silent, progress_for
from rdeepsense._torch import threads_outside
from rdeepsense.data.scaling import Scaler
from rdeepsense.data.splits import Part
from rdeepsense.data.stream import ParquetSplit, Shares, to_send
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.engines import Ray
from rdeepsense.errors import InputError, RDeepSenseError, TrainingError, require
from rdeepsense.fitting.stream_trainer import Reader, StreamTrainer, opened, place_for
from rdeepsense.fitting.target import Target
from rdeepsense.scoring import ScoringRule
from rdeepsense.training import Rows, Schedule, StreamedRows, TrainingRecord, train_networks
from rdeepsense.training.checkpoint import Checkpoint, fingerprint
from rdeepsense.training.workers import JointCheckpoint, WorkerGroup

# --------------------------------------------------------------------------------------------------
# The specification of a joint training
#
# Each of W workers opens the files itself, reads its share of the rows (`data.stream`) within the
# budget of memory, which is each one's own, and takes B / W of the B rows of every batch. Networks,
# validation rows, number of steps and learning rates are those of a training in one process; with
# one worker so are the rows, their order and the masks, and the result is the same to the bit.
# --------------------------------------------------------------------------------------------------

CPU = torch.device("cpu")


@dataclass
class JointRecord(TrainingRecord):
    """The course of a training that workers did together, and the part of each.

    `workers` has the steps of each, the rows of its share, and, since it was last started, the
    bytes of gradients that it gave to be averaged and the seconds that it computed.
    `seconds_around` is the time in which workers were started and ended, without reading rows.
    """

    workers: list[dict[str, float]] = field(default_factory=list)
    seconds_around: float = 0.0


@dataclass(frozen=True)
class JointJob:
    """Networks, how they are trained, and where the rows are; it travels to the workers."""

    networks: Sequence[StochasticNetwork]
    rule: ScoringRule
    weight_decay: float
    held: Rows
    schedule: Schedule  # its batches are those of all workers together
    split: ParquetSplit
    shares: Shares
    input_scaler: Scaler
    target_scaler: Scaler | None
    target: Target
    window: int | None  # rows of a window; None where every share stays in memory

    @property
    def workers(self) -> int:
        return len(self.shares.parts)

    def fingerprint(self) -> str:
        """Return a digest of everything that the result depends on."""
        states = [value for network in self.networks for value in network.state_dict().values()]
        settings = (
            f"{self.schedule} {self.rule} {self.weight_decay} {self.networks} {self.shares} "
            f"{self.window} {self.split.columns} {self.split.table.description()} "
            f"{self.input_scaler} {self.target_scaler}"
        )
        return fingerprint(settings, [*states, *self.held.signature()])

    def run(
        self,
        peers: WorkerGroup,
        checkpoint: str | os.PathLike[str] | None = None,
        display: Progress | None = None,
        device: torch.device = CPU,
    ) -> tuple[list[StochasticNetwork], JointRecord]:
        """Do the part of one worker; all come to the same networks."""
        begin = time.process_time()
        split = self.shares.split(self.split, peers.rank)
        total = sum(split.found.counts)
        size = total if self.window is None else min(self.window, total)
        in_memory = self.window is None
        rows = opened(
            split,
            Reader(split, self.input_scaler, self.target_scaler, self.target),
            place_for(split, self.target_scaler, size, in_memory, device),
            in_memory,
            device,
        )
        own = replace(
            self.schedule,
            batch_size=self.schedule.batch_size // peers.size,
            seed=peers.seed(self.schedule.seed),
        )
        weight = self.held.weight
        held = Rows(
            self.held.x.to(device),
            self.held.y.to(device),
            None if weight is None else weight.to(device),
        )
        with closing(rows.windows) if isinstance(rows, StreamedRows) else nullcontext():
            done, record = train_networks(
                self.networks,
                self.rule,
                self.weight_decay,
                rows=rows,
                validation=held,
                schedule=own,
                checkpoint=checkpoint,
                peers=peers,
                display=display,
            )
        part = {
            "steps": record.steps,
            "batch_size": own.batch_size,
            "rows": total,
            "bytes_reduced": peers.reduced,
            "cpu_seconds": time.process_time() - begin,
        }
        return done, JointRecord(**asdict(record), workers=peers.gathered(part))


def joint_schedule(schedule: Schedule, workers: int, smallest: int) -> Schedule:
    """Round a batch down to equal parts, none larger than the smallest share of the rows."""
    each = min(schedule.batch_size // workers, smallest)
    return replace(schedule, batch_size=each * workers)


# --------------------------------------------------------------------------------------------------
# Progress of remote workers on the local display
# --------------------------------------------------------------------------------------------------

LOOK_EVERY = 0.5  # seconds

News = tuple[int, int, str]  # steps in all, done, and a note


class Board:
    """The last news of a run, in an actor."""

    def __init__(self) -> None:
        self._news: News | None = None

    def pin(self, news: News) -> None:
        """Replace the news."""
        self._news = news

    def read(self) -> News | None:
        """Return the news, None before there are any."""
        return self._news


@dataclass
class Relay:
    """A display, for a worker, that pins what it is told to the board."""

    board: Any  # a handle of Ray's
    total: int = 0

    def start(self, title: str, total: int, done: int) -> None:
        self.total = total
        self.board.pin.remote((total, done, ""))

    def update(self, done: int, note: str) -> None:
        self.board.pin.remote((self.total, done, note))

    def close(self) -> None: ...


@contextmanager
def relayed(ray: Any, display: Progress, title: str) -> Iterator[Relay | None]:
    """Show what a worker says to the relay; there is none where nothing is shown."""
    if isinstance(display, Silent):
        yield None
        return
    board = ray.remote(num_cpus=0)(Board).remote()
    over = threading.Event()
    watch = threading.Thread(target=_show, args=(ray, board, display, title, over), daemon=True)
    with closing(display):
        watch.start()
        try:
            yield Relay(board)
        finally:
            over.set()
            watch.join()
            ray.kill(board)


def _show(ray: Any, board: Any, display: Progress, title: str, over: threading.Event) -> None:
    begun = False
    last = False
    while not last:
        last = over.wait(LOOK_EVERY)  # then look once more
        news: News | None = ray.get(board.read.remote())
        if news is None:
            continue
        if not begun:
            display.start(title, news[0], news[1])
            begun = True
        display.update(news[1], news[2])


# --------------------------------------------------------------------------------------------------
# Joint training with Ray Train: workers, checkpoints, restarts
#
# Ray starts the workers, connects them (gloo, or NCCL between GPUs), keeps the last checkpoint in
# the run's storage and, where a worker is lost, starts all of them again from it. The run is named
# after a digest of the job: the same job in the same storage goes on where it was, whoever was
# killed.
# --------------------------------------------------------------------------------------------------

LOOK = "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"

Trained = tuple[list[StochasticNetwork], JointRecord]
States = list[dict[str, NDArray[Any]]]


class RayPeers(WorkerGroup):
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


# --------------------------------------------------------------------------------------------------
# Training on Parquet files with a Ray cluster
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowsElsewhere(Rows):
    """No rows: how many the workers have together, and the scale of their targets."""

    count: int = 0
    scaler: Scaler | None = None

    @property
    def total(self) -> int:
        return self.count


class JointTrainer(StreamTrainer):
    """A trainer whose trainings are runs of Ray Train."""

    def training_rows(self, part: Part, scaler: Scaler | None) -> Rows:
        nothing = torch.empty(0)
        return RowsElsewhere(nothing, nothing, count=self.row_count, scaler=scaler)

    def _train(
        self,
        networks: Sequence[StochasticNetwork],
        rule: ScoringRule,
        rows: Rows,
        held: Rows,
        schedule: Schedule,
        checkpoint: str | os.PathLike[str] | None,
        title: str,
    ) -> Trained:
        assert isinstance(rows, RowsElsewhere)
        engine = cast("Ray", self.spec.engine)
        with engine.connected() as ray:
            job = self._job(
                networks,
                rule,
                rows,
                held=held,
                schedule=schedule,
                workers=worker_count(engine, ray),
            )
            display = progress_for(self.spec.verbose)
            return train_with_ray(
                job, engine, ray, checkpoint=checkpoint, display=display, title=title
            )

    def _job(
        self,
        networks: Sequence[StochasticNetwork],
        rule: ScoringRule,
        rows: RowsElsewhere,
        held: Rows,
        schedule: Schedule,
        workers: int,
    ) -> JointJob:
        """Describe a training for so many workers."""
        if workers > min(schedule.batch_size, self.row_count):
            raise InputError(
                f"workers = {workers}: is more than the {schedule.batch_size} rows of a batch, of "
                "which each takes a part; give fewer, or a larger batch_size"
            )
        counts = self._split.found.counts
        shares = Shares.of(counts, workers)
        sizes = shares.rows(counts)
        batch = max(1, min(self._batch(self.row_count) // workers, min(sizes)))
        window = self._window_rows(max(sizes), batch, rows.scaler)
        return JointJob(
            networks=networks,
            rule=rule,
            weight_decay=self.spec.weight_decay,
            held=Rows(
                held.x.cpu(), held.y.cpu(), None if held.weight is None else held.weight.cpu()
            ),
            schedule=joint_schedule(schedule, workers, min(sizes)),
            split=to_send(self._split),
            shares=shares,
            input_scaler=self.input_scaler,
            target_scaler=rows.scaler,
            target=self.target,
            window=None if window == max(sizes) else window,
        )
