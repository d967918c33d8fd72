"""Training by several processes that exchange gradients, with one checkpoint for all."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from rdeepsense._progress import Progress
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.training.checkpoint import SHARE_OF_TIME, Checkpoint
from rdeepsense.training.schedule import Rows

# --------------------------------------------------------------------------------------------------
# Workers that train one bank, each on its own share of the rows
#
# With B / W rows in the batch of each of W workers, the mean of their gradients is the gradient of
# one batch of B rows:
#
#     g = 1/W sum_w g_w,   g_w = d/d theta of the mean loss over the B / W rows of worker w
#
# It is taken before clipping and before Adam, so all workers hold the same weights after every step
# without sending any. One worker alone exchanges nothing.
# --------------------------------------------------------------------------------------------------


class WorkerGroup:
    """The workers of a run, of which this process is the one of number `rank`.

    Beyond one, torch.distributed must have been initialised with as many.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size
        self.reduced = 0  # bytes of gradients and statistics that this worker gave to be averaged

    def average(self, flat: Tensor) -> None:
        """Replace a tensor by its mean over the workers."""
        if self.size == 1:
            return
        torch.distributed.all_reduce(flat)
        flat.div_(self.size)
        self.reduced += flat.numel() * flat.element_size()

    def averaged(self, gradients: Sequence[Tensor], statistics: Sequence[Tensor]) -> list[Tensor]:
        """Return the mean of each gradient, and set statistics to theirs, all in one exchange."""
        if self.size == 1:
            return list(gradients)
        every = [*gradients, *statistics]
        flat = torch.cat([tensor.reshape(-1) for tensor in every])
        self.average(flat)
        parts = flat.split([tensor.numel() for tensor in every])
        means = [part.view(tensor.shape) for part, tensor in zip(parts, every, strict=True)]
        for value, mean in zip(statistics, means[len(gradients) :], strict=True):
            value.copy_(mean)
        return means[: len(gradients)]

    def add(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over the workers."""
        if self.size > 1:
            torch.distributed.all_reduce(tensor)

    def agreed(self, number: int, device: torch.device) -> int:
        """Return the number that the first worker has."""
        if self.size == 1:
            return number
        told = torch.tensor([number], device=device)
        torch.distributed.broadcast(told, 0)
        return int(told)

    def gathered(self, part: dict[str, float]) -> list[dict[str, float]]:
        """Return what each worker has to say, in their order."""
        if self.size == 1:
            return [part]
        every: list[dict[str, float]] = [{}] * self.size
        torch.distributed.all_gather_object(every, part)
        return every

    def checkpoint(
        self, path: str | os.PathLike[str], fingerprint: str, device: torch.device
    ) -> Checkpoint:
        """Return the place where this worker saves its state."""
        return Checkpoint(path, fingerprint)

    def seed(self, seed: int) -> int:
        """Return the seed of this worker, for masks and the order of rows; the first has `seed`."""
        if self.rank == 0:
            return seed
        return int(np.random.SeedSequence((seed, self.rank)).generate_state(1)[0] >> 1)

    def part_of(self, rows: Rows) -> Rows:
        """Return every W-th row, for a sum that the workers share."""
        if self.size == 1:
            return rows
        own = slice(self.rank, None, self.size)
        weight = None if rows.weight is None else rows.weight[..., own].contiguous()
        return Rows(rows.x[own].contiguous(), rows.y[own].contiguous(), weight)


ALONE = WorkerGroup()


def statistics_of(bank: nn.Module) -> list[Tensor]:
    """Return the running means and variances of batches, which workers average like gradients."""
    norms = [module for module in bank.modules() if isinstance(module, _BatchNorm)]
    found = [value for norm in norms for value in (norm.running_mean, norm.running_var)]
    return [value for value in found if value is not None]


# --------------------------------------------------------------------------------------------------
# Checkpoints of several workers, after the same step
#
# Weights are the same on all, random states are not. The clock of the first worker says after how
# many steps they save again, so that no step has to ask.
# --------------------------------------------------------------------------------------------------

CPU = torch.device("cpu")
LEAST = 20.0  # seconds between two states: starting workers again takes as long


class JointCheckpoint(Checkpoint):
    """A place to save this worker's state; `hand_over` takes those of all to where they are safe.

    `hand_over` is called by every worker after the same step, and may wait for the others.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fingerprint: str,
        peers: WorkerGroup,
        hand_over: Callable[[], None],
        device: torch.device = CPU,
    ) -> None:
        super().__init__(path, fingerprint)
        self._peers, self._hand_over, self._device = peers, hand_over, device
        self._wait, self._steps = 1, 0
        self._since = time.monotonic()

    def due(self) -> bool:
        """Tell whether it is time to save again; asked once after each step."""
        self._steps += 1
        return self._steps >= self._wait

    def save(self, header: model_file.Header, tensors: dict[str, Tensor]) -> None:
        """Write the state and hand it over; the next one is due when the cost is paid off."""
        begin = time.monotonic()
        pace = (begin - self._since) / max(1, self._steps)
        super().save(header, tensors)
        self._hand_over()
        self._since = time.monotonic()
        wait = max(LEAST, (self._since - begin) / SHARE_OF_TIME)
        steps = max(1, round(wait / max(pace, 1e-6)))
        self._wait, self._steps = self._peers.agreed(steps, self._device), 0


# --------------------------------------------------------------------------------------------------
# One progress display for several runs
# --------------------------------------------------------------------------------------------------


class JointProgress:
    """A display of the sum of all runs' steps; each run has a `part` of it."""

    def __init__(self, display: Progress, title: str, runs: int) -> None:
        self._display, self._title = display, title
        self._done = [0] * runs
        self._lock = threading.Lock()
        self._started = False

    def part(self, number: int) -> Progress:
        """Return the display of one of the runs."""
        return _Part(self, number)

    def start(self, number: int, total: int, done: int) -> None:
        """Begin with the first run that begins; the others are as long."""
        with self._lock:
            self._done[number] = done
            if not self._started:
                self._started = True
                self._display.start(self._title, total * len(self._done), sum(self._done))

    def update(self, number: int, done: int, note: str) -> None:
        """Show a run's steps with those of the others."""
        with self._lock:
            self._done[number] = done
            self._display.update(sum(self._done), note)

    def close(self) -> None:
        """End the display."""
        self._display.close()


class _Part:
    """What a run takes for a display of its own; it does not end the common one."""

    def __init__(self, whole: JointProgress, number: int) -> None:
        self._whole, self._number = whole, number

    def start(self, title: str, total: int, done: int) -> None:
        self._whole.start(self._number, total, done)

    def update(self, done: int, note: str) -> None:
        self._whole.update(self._number, done, note)

    def close(self) -> None: ...
