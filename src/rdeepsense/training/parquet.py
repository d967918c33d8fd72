"""Data larger than memory: an endless stream of shuffled parts, cut into windows of equal size.

Training sees one window at a time as if it were the whole table, its rows shuffled; the next window
is read meanwhile. The parts (row groups of files) come in an order drawn anew for every epoch, and
every row comes once an epoch: a window may end one epoch and begin the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rdeepsense.errors import InputError
from rdeepsense.training.schedule import Rows

Pair = tuple[Tensor, Tensor]
Place = tuple[int, int]  # the epoch and the part


class Windows:
    """Windows of `size` rows out of parts with `counts` rows, which `read(part)` gives.

    `readers` threads read parts at the same time. `pinned` windows lie in page-locked memory,
    which a GPU reads directly.
    """

    def __init__(
        self,
        counts: Sequence[int],
        read: Callable[[int], Pair],
        size: int,
        seed: int,
        readers: int = 1,
        pinned: bool = False,
    ) -> None:
        self.counts = np.asarray(counts, dtype=np.int64)
        self.rows = int(self.counts.sum())
        if not 0 < size <= self.rows:
            raise InputError(f"a window of {size} rows does not fit the {self.rows} rows there are")
        self.size, self._read, self._seed, self._pinned = size, read, seed, pinned
        self._last: tuple[Place, Pair] | None = None
        self._filler = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rdeepsense-fill")
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="rdeepsense-read")
        self._ahead: tuple[int, Future[Pair]] | None = None

    def window(self, number: int) -> Pair:
        """Return the window of this number; the one after it is being read meanwhile."""
        if self._ahead is not None and self._ahead[0] == number:
            pair = self._ahead[1].result()
        else:
            pair = self._filler.submit(self._fill, number).result()
        self._ahead = (number + 1, self._filler.submit(self._fill, number + 1))
        return pair

    def close(self) -> None:
        """Stop reading ahead."""
        self._filler.shutdown(wait=True, cancel_futures=True)
        self._readers.shutdown(wait=True, cancel_futures=True)

    def _fill(self, number: int) -> Pair:
        places, pieces = zip(*self._plan(number), strict=True)
        found = list(self._readers.map(self._part, places))
        self._last = (places[-1], found[-1])  # the next window may begin within it
        columns = zip(*found, strict=True)
        x, y = (self._joined([t[p] for t, p in zip(c, pieces, strict=True)]) for c in columns)
        return x, y

    def _plan(self, number: int) -> Iterator[tuple[Place, slice]]:
        """Yield the pieces of a window: which part in which epoch, and which of its rows."""
        epoch, offset = divmod(number * self.size, self.rows)
        missing = self.size
        while missing:
            order = np.random.default_rng((self._seed, epoch)).permutation(len(self.counts))
            starts = np.concatenate([[0], np.cumsum(self.counts[order])])
            place = int(np.searchsorted(starts, offset, side="right")) - 1
            for part in order[place:]:
                first = offset - int(starts[place])
                stop = min(int(self.counts[part]), first + missing)
                yield (epoch, int(part)), slice(first, stop)
                taken = stop - first
                missing, offset, place = missing - taken, offset + taken, place + 1
                if not missing:
                    break
            epoch, offset = epoch + 1, 0

    def _part(self, place: Place) -> Pair:
        if self._last is not None and self._last[0] == place:
            return self._last[1]
        part = place[1]
        pair = self._read(part)
        if len(pair[0]) != self.counts[part]:
            raise InputError(
                f"part {part} has {len(pair[0])} rows, it had {self.counts[part]} when the "
                "training began; leave files alone while a model trains on them"
            )
        return pair

    def _joined(self, pieces: Sequence[Tensor]) -> Tensor:
        shape = (self.size, *pieces[0].shape[1:])
        into = torch.empty(shape, dtype=pieces[0].dtype, pin_memory=self._pinned)
        return torch.cat(list(pieces), out=into)


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
