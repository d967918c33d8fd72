"""Banks that are trained in chunks of networks, side by side on a GPU."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TypeVar

from rdeepsense._progress import Progress, progress_for
from rdeepsense._torch import StopOnInterrupt, threads_outside
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.scoring import ScoringRule
from rdeepsense.training.bank import Bank, DenseBank, stack
from rdeepsense.training.loop import train
from rdeepsense.training.parquet import StreamedRows
from rdeepsense.training.schedule import Rows, Schedule, TrainingRecord
from rdeepsense.training.workers import ALONE, JointProgress, Peers

# --------------------------------------------------------------------------------------------------
# Runs at the same time, each in a thread of Python; torch computes outside of Python's lock
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
# Many networks: banks of as many as fit well in the caches, a few of them at the same time
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
    peers: Peers = ALONE,
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
