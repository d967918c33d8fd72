"""Workers that train one bank together, each on batches of its own share of the rows.

With B / W rows in the batch of each of W workers, the mean of their gradients is the gradient of
one batch of B rows:

    g = 1/W sum_w g_w,   g_w = d/d theta of the mean loss over the B / W rows of worker w

It is taken before clipping and before Adam, so all workers hold the same weights after every step
without sending any. One worker alone exchanges nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from rdeepsense.training.checkpoint import Checkpoint
from rdeepsense.training.schedule import Rows


class Peers:
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


ALONE = Peers()


def statistics_of(bank: nn.Module) -> list[Tensor]:
    """Return the running means and variances of batches, which workers average like gradients."""
    norms = [module for module in bank.modules() if isinstance(module, _BatchNorm)]
    found = [value for norm in norms for value in (norm.running_mean, norm.running_var)]
    return [value for value in found if value is not None]
