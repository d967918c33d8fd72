"""Data larger than memory: an endless stream of shuffled parts, cut into windows of equal size.

Training sees one window at a time as if it were the whole table, its rows shuffled; the next window
is read meanwhile. The parts (row groups of files) come in an order drawn anew for every epoch, and
every row comes once an epoch: a window may end one epoch and begin the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rdeepsense.errors import InputError
from rdeepsense.training.schedule import Rows

Pair = tuple[Tensor, Tensor]


class Windows:
    """Windows of `size` rows out of parts with `counts` rows, which `read(part)` gives."""

    def __init__(
        self, counts: Sequence[int], read: Callable[[int], Pair], size: int, seed: int
    ) -> None:
        self.counts = np.asarray(counts, dtype=np.int64)
        self.rows = int(self.counts.sum())
        if not 0 < size <= self.rows:
            raise InputError(f"a window of {size} rows does not fit the {self.rows} rows there are")
        self.size, self._read, self._seed = size, read, seed
        self._last: tuple[tuple[int, int], Pair] | None = None
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rdeepsense-read")
        self._ahead: tuple[int, Future[Pair]] | None = None

    def window(self, number: int) -> Pair:
        """The window of this number; the one after it is being read when this returns."""
        if self._ahead is not None and self._ahead[0] == number:
            pair = self._ahead[1].result()
        else:
            pair = self._reader.submit(self._fill, number).result()
        self._ahead = (number + 1, self._reader.submit(self._fill, number + 1))
        return pair

    def close(self) -> None:
        """Stop reading ahead."""
        self._reader.shutdown(wait=True, cancel_futures=True)

    def _fill(self, number: int) -> Pair:
        epoch, offset = divmod(number * self.size, self.rows)
        pieces: list[Pair] = []
        missing = self.size
        while missing:
            order = np.random.default_rng((self._seed, epoch)).permutation(len(self.counts))
            starts = np.concatenate([[0], np.cumsum(self.counts[order])])
            place = int(np.searchsorted(starts, offset, side="right")) - 1
            while missing and place < len(order):
                x, y = self._part(epoch, int(order[place]))
                first = offset - int(starts[place])
                piece = slice(first, min(len(x), first + missing))
                pieces.append((x[piece], y[piece]))
                taken = piece.stop - piece.start
                missing, offset, place = missing - taken, offset + taken, place + 1
            epoch, offset = epoch + 1, 0
        x, y = (torch.cat(column) for column in zip(*pieces, strict=True))
        return x, y

    def _part(self, epoch: int, part: int) -> Pair:
        """A part, kept until another is asked for: windows end within parts."""
        if self._last is None or self._last[0] != (epoch, part):
            pair = self._read(part)
            if len(pair[0]) != self.counts[part]:
                raise InputError(
                    f"part {part} has {len(pair[0])} rows, it had {self.counts[part]} when the "
                    "training began; leave files alone while a model trains on them"
                )
            self._last = ((epoch, part), pair)
        return self._last[1]


@dataclass(frozen=True)
class StreamedRows(Rows):
    """A window of rows on the device, in tensors that stay where they are."""

    windows: Windows = field(kw_only=True)
    description: str = field(kw_only=True)  # what a checkpoint's fingerprint says of the data

    @property
    def total(self) -> int:
        return self.windows.rows

    def turn_to(self, window: int) -> None:
        x, y = self.windows.window(window)
        self.x.copy_(x)
        self.y.copy_(y)

    def signature(self) -> list[Tensor | str | None]:
        return [self.description]
