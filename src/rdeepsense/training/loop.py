"""The training loop, and banks that are trained in chunks, side by side on a GPU."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing, nullcontext
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from rdeepsense import _torch
from rdeepsense._progress import Progress, Silent, progress_for
from rdeepsense._torch import StopOnInterrupt, sensible_threads, tensor_cores, threads_outside
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import CheckpointError, TrainingError
from rdeepsense.modelfile.tensors import under
from rdeepsense.scoring import ScoringRule
from rdeepsense.training.bank import Bank, DenseBank, stack
from rdeepsense.training.checkpoint import Checkpoint, check_state, fingerprint
from rdeepsense.training.parquet import StreamedRows
from rdeepsense.training.schedule import EVERY, MovingAverage, Rows, Schedule, TrainingRecord
from rdeepsense.training.step import accelerate, step_for
from rdeepsense.training.workers import ALONE, JointProgress, WorkerGroup

# --------------------------------------------------------------------------------------------------
# The training loop
#
# What is validated and kept is a moving average of the weights over the last fiftieth of the
# schedule.
#
# Everything a step does is a function of the state (weights, Adam's moments, random numbers, step
# number), so equal seeds give equal bits and a resumed run cannot be told from an uninterrupted
# one.
# --------------------------------------------------------------------------------------------------

# Of one layer, over all members and rows: what bounds the memory of a validation pass.
VALIDATION_ACTIVATIONS = {"cpu": 4_000_000, "cuda": 200_000_000}

DRAWN = "masks of a generator of their own"  # a checkpoint with others cannot be taken up


def train(
    bank: Bank,
    rule: ScoringRule,
    weight_decay: Sequence[float],
    rows: Rows,
    validation: Rows,
    schedule: Schedule,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    title: str = "training",
    mode: str | None = None,
    stop: StopOnInterrupt | None = None,
    sharing: int = 1,
    peers: WorkerGroup = ALONE,
) -> TrainingRecord:
    """Train the bank in place; afterwards it has kept each member's best step by validation NLL.

    The weight decay is AdamW's, on weights only: W <- (1 - lr decay) W before each step, one per
    member. `mode` is how a GPU takes its steps ("eager", "captured", "compiled"; None chooses).
    With a `checkpoint` path the state is saved there as training goes on, and a run whose
    state is found there goes on from it. Ctrl-C ends the run between two steps; what it has then is
    evaluated for the caller alone. Of several runs at the same time, `sharing` the cores, the
    caller listens for Ctrl-C: `stop` is then what it has opened. With `peers` this process trains
    the bank together with others: `rows` are its share, the schedule's batches its part of theirs.
    """
    begin = time.monotonic()
    progress = progress or Silent()
    device = rows.x.device
    with (
        _torch.drawing(schedule.seed, device, bank.draws_elsewhere),
        sensible_threads(bank.size * schedule.batch_size * bank.width**2, sharing),
        nullcontext(stop) if stop is not None else StopOnInterrupt() as stop,
        closing(progress),
    ):
        run = _Run(
            bank.to(device), rule.to(device), weight_decay, rows, validation, schedule, mode, peers
        )
        saver = None
        if checkpoint is not None:
            saver = peers.checkpoint(checkpoint, run.fingerprint(), device)
        resumed_at = run.resume(saver) if saver else None
        progress.start(title, schedule.last_step, run.steps)
        while not (run.finished() or stop.requested):
            run.step()
            if run.evaluation_due():
                run.evaluate()
                progress.update(run.steps, f"validation NLL {run.best_nll.min():.3f}")
            if saver and saver.due():
                run.save(saver)
        if saver:
            run.save(saver)
        # After saving: no evaluation off schedule may be part of what a resumed run goes on from.
        if run.evaluated_at[-1:] != [run.steps]:
            run.evaluate()
    if not torch.isfinite(run.best_nll).all():
        raise TrainingError(
            "training diverged: the validation NLL was never finite; lower learning_rate, or look "
            "for outliers in the targets"
        )
    return TrainingRecord(
        best_nll=run.best_nll.tolist(),
        best_step=run.best_step.tolist(),
        steps=run.steps,
        seconds=time.monotonic() - begin,
        interrupted=stop.requested,
        resumed_at=resumed_at,
        evaluated_at=run.evaluated_at,
        history=torch.stack(run.history).tolist(),
    )


def validation_nll(bank: Bank, rows: Rows, peers: WorkerGroup = ALONE) -> Tensor:
    """Return the mean NLL of each member's single deterministic pass, in float64 on the CPU.

    The mean is over the rows of all peers.
    """
    bank.eval()
    total = torch.zeros(bank.size, dtype=torch.float64, device=rows.x.device)
    weight = torch.ones(1, len(rows)).to(rows.x) if rows.weight is None else rows.weight
    # TF32 on a GPU only: on a CPU the same switch would change what float32 means there.
    with torch.no_grad(), tensor_cores() if rows.x.is_cuda else nullcontext():
        most = VALIDATION_ACTIVATIONS["cuda" if rows.x.is_cuda else "cpu"]
        chunk = max(256, most // (bank.size * bank.numbers))
        for start in range(0, len(rows), chunk):
            part = slice(start, start + chunk)
            nll = bank(rows.x[part]).nll(rows.y[part])
            per_row = nll.reshape(*nll.shape[:2], -1).double().mean(-1)
            total += (per_row * weight[..., part]).sum(-1)
    weights = weight.double().sum(-1)
    peers.add(total)
    peers.add(weights)
    return (total / weights).cpu()


class _Run:
    """The state of a run and the steps that change it."""

    def __init__(
        self,
        bank: Bank,
        rule: ScoringRule,
        weight_decay: Sequence[float],
        rows: Rows,
        validation: Rows,
        schedule: Schedule,
        mode: str | None = None,
        peers: WorkerGroup = ALONE,
    ) -> None:
        self.bank, self.rule, self.peers = bank, rule, peers
        self.rows, self.validation = rows, peers.part_of(validation)
        self.schedule = schedule
        self.device = rows.x.device
        self.one_step = step_for(bank, rule, weight_decay, rows, schedule, peers)
        if peers.size > 1:  # no recording: an exchange has to wait for the others
            mode = "eager"
        self._take = accelerate(self.one_step, schedule.last_step, mode)
        self.steps = 0
        self.best_nll = torch.full((bank.size,), torch.inf, dtype=torch.float64)
        self.best_step = torch.zeros(bank.size, dtype=torch.int64)
        self.stale = torch.zeros(bank.size, dtype=torch.int64)
        self.evaluated_at: list[int] = []
        self.history: list[Tensor] = []
        self.average = MovingAverage(bank, schedule.steps)
        self.stopped = False  # every member has waited too long for a new best
        self._window = -1

    def finished(self) -> bool:
        return self.stopped or self.steps >= self.schedule.last_step

    def step(self) -> None:
        window, position = divmod(self.steps, len(self.one_step.order))
        if window != self._window:
            self._window = window
            self.rows.turn_to(window)
            self.one_step.shuffle(window, position)
        self._take()
        self.steps += 1
        if self.steps % EVERY == 0 or self.evaluation_due():
            self.average.update(self.steps)

    def evaluation_due(self) -> bool:
        due = self.steps % self.schedule.evaluate_every == 0
        return due or self.steps == self.schedule.last_step

    def evaluate(self) -> None:
        """Score the averages on the validation rows; keep those better than ever, not stopped."""
        with self.average.in_place():
            nll = validation_nll(self.bank, self.validation, self.peers)
            if self.schedule.together > 1:
                groups = nll.view(-1, self.schedule.together)
                nll = groups.mean(1, keepdim=True).expand_as(groups).flatten()
            better = (nll < self.best_nll) & (self.stale < self.schedule.patience)
            self.bank.keep(better.to(self.device))
        self.best_nll = torch.where(better, nll, self.best_nll)
        self.best_step[better] = self.steps
        self.stale = torch.where(better, 0, self.stale + 1)
        self.stopped = bool((self.stale >= self.schedule.patience).all())
        self.evaluated_at.append(self.steps)
        self.history.append(nll)

    def fingerprint(self) -> str:
        decay = self.one_step.weight_decay.tolist()
        settings = f"{DRAWN} {self.schedule} {self.rule} {decay} {self.bank.describe()}"
        data = [*self.rows.signature(), *self.validation.signature()]
        return fingerprint(settings, [*self.bank.state_dict().values(), *data])

    def save(self, saver: Checkpoint) -> None:
        saver.save({"steps": self.steps, "evaluated_at": self.evaluated_at}, self._tensors())

    def _tensors(self) -> dict[str, Tensor]:
        """Return the state by the names of a checkpoint."""
        tensors = {f"bank.{name}": value for name, value in self.bank.state_dict().items()}
        tensors |= {f"kept.{name}": value for name, value in self.bank.kept.items()}
        tensors |= {f"average.{name}": value for name, value in self.average.tensors.items()}
        for name, moments in self._moments():
            tensors |= {f"adam.{name}.{number}": value for number, value in enumerate(moments)}
        tensors |= {"best_nll": self.best_nll, "best_step": self.best_step, "stale": self.stale}
        if self.history:
            tensors["history"] = torch.stack(self.history)
        tensors |= {f"random.{name}": state for name, state in _torch.states().items()}
        return tensors

    def _moments(self) -> list[tuple[str, list[Tensor]]]:
        return [("first", self.one_step.first), ("second", self.one_step.second)]

    def resume(self, saver: Checkpoint) -> int | None:
        """Take up the saved state of this run, if there is one; the step it was saved at."""
        saved = saver.load()
        if saved is None:
            return None
        header, tensors = saved
        check_state(saver.path, header, tensors, self._tensors(), self.schedule.last_step)
        self.steps, self.evaluated_at = header["steps"], list(header["evaluated_at"])
        self.bank.load_state_dict(under("bank", tensors))
        self.bank.kept = {k: v.to(self.device) for k, v in under("kept", tensors).items()}
        self.average.load(under("average", tensors))
        for name, moments in self._moments():
            for number, moment in enumerate(moments):
                moment.copy_(tensors[f"adam.{name}.{number}"])
        self.one_step.go_to(self.steps)
        self.best_nll, self.best_step = tensors["best_nll"], tensors["best_step"]
        self.stale = tensors["stale"]
        self.stopped = bool((self.stale >= self.schedule.patience).all())
        self.history = list(tensors["history"]) if "history" in tensors else []
        try:
            _torch.restore(under("random", tensors))
        except RuntimeError as error:
            raise CheckpointError(f"{saver.path}: random is no state: {error}") from error
        return self.steps


# --------------------------------------------------------------------------------------------------
# Concurrent runs in threads
#
# All share one `StopOnInterrupt`: signals reach the main thread alone, which waits meanwhile.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Training of many networks, in banks that fit in the caches
# --------------------------------------------------------------------------------------------------

# Of one layer, over all members and rows of a batch: what fits in the caches of a CPU, and what
# keeps a GPU busy.
ACTIVATIONS = {"cpu": 1_000_000, "cuda": 50_000_000}
# Members x rows of a batch x the square of `Bank.numbers`: where two threads that each train one
# half beat one that trains the whole: measured, a step of 4.5 ms gains 1.5, one of 2.8 ms 1.2, and
# shorter ones lose, because the threads take turns in Python between the operations.
DIVIDE_FROM = 20_000_000


def train_networks(
    networks: Sequence[StochasticNetwork],
    rule: ScoringRule,
    weight_decay: float,
    rows: Rows,
    validation: Rows,
    schedule: Schedule,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    title: str = "training",
    peers: WorkerGroup = ALONE,
    display: Progress | None = None,
) -> tuple[list[StochasticNetwork], TrainingRecord]:
    """Train all networks side by side; they come back with their best steps, and the record.

    `rule` has one alpha for each of them. `peers` are as for `train`. A `display` that is given
    shows the progress, whatever `verbose` is.
    """
    begin = time.monotonic()
    one = stack(networks[:1])
    size = _size(one, len(networks), rows, schedule)
    starts = range(0, len(networks), size)
    # Peers exchange gradients in one order, so their chunks come one after the other.
    may_share = _may_share(one, rows) and peers.size == 1
    workers = min(len(starts), threads_outside()) if may_share else 1
    with (
        StopOnInterrupt() as stop,
        closing(JointProgress(display or progress_for(verbose), title, len(starts))) as progress,
    ):

        def chunk(start: int) -> tuple[list[StochasticNetwork], TrainingRecord]:
            part = slice(start, start + size)
            bank = stack(networks[part])
            path = f"{os.fspath(checkpoint)}-{start}" if checkpoint and start else checkpoint
            record = train(
                bank,
                rule.members(part),
                [weight_decay] * bank.size,
                _of_members(rows, part),
                _of_members(validation, part),
                schedule,
                path,
                progress.part(start // size),
                title,
                stop=stop,
                sharing=workers,
                peers=peers,
            )
            return bank.networks(), record

        found = side_by_side([partial(chunk, start) for start in starts], workers, stop)
    if not found:  # Ctrl-C came before the first step
        raise KeyboardInterrupt
    record = _joined([record for _, record in found], time.monotonic() - begin)
    done = [network for own, _ in found for network in own]
    return done, replace(record, interrupted=stop.requested)


def _size(one: Bank, count: int, rows: Rows, schedule: Schedule) -> int:
    """Return how many networks make a chunk; `one` is a bank of the first alone.

    It must not depend on the number of cores, because a chunk draws its masks as a whole.
    """
    most = ACTIVATIONS["cuda" if rows.x.is_cuda else "cpu"]
    batch = min(schedule.batch_size, len(rows))
    parts = math.ceil(count / max(1, most // (batch * one.numbers)))
    heavy = isinstance(one, DenseBank) and count * batch * one.numbers**2 >= DIVIDE_FROM
    if heavy and _may_share(one, rows):
        parts = max(2, parts)
    size = math.ceil(count / parts)  # chunks of about equal size
    return math.ceil(size / schedule.together) * schedule.together


def _may_share(bank: Bank, rows: Rows) -> bool:
    """Tell whether chunks can be trained at the same time.

    A GPU is busy with one; torch's own generator and the window of a stream exist once.
    """
    streamed = isinstance(rows, StreamedRows)
    return not (rows.x.is_cuda or streamed or bank.draws_elsewhere)


def _of_members(rows: Rows, part: slice) -> Rows:
    if rows.weight is None or rows.weight.ndim == 1:
        return rows
    return replace(rows, weight=rows.weight[part])


def _joined(records: Sequence[TrainingRecord], seconds: float) -> TrainingRecord:
    """Join the records of all members; the curves are as long as the shortest of them."""
    if len(records) == 1:
        return records[0]
    evaluated_at: list[int] = []
    for steps in zip(*(r.evaluated_at for r in records), strict=False):
        if len(set(steps)) > 1:  # of the last ones where they were stopped
            break
        evaluated_at.append(steps[0])
    histories = [r.history[: len(evaluated_at)] for r in records]
    return TrainingRecord(
        best_nll=[x for r in records for x in r.best_nll],
        best_step=[x for r in records for x in r.best_step],
        steps=max(r.steps for r in records),
        seconds=seconds,
        interrupted=any(r.interrupted for r in records),
        resumed_at=max((r.resumed_at for r in records if r.resumed_at is not None), default=None),
        evaluated_at=evaluated_at,
        history=[[x for own in lists for x in own] for lists in zip(*histories, strict=True)],
    )
