"""Dropout masks of many steps at once, which cost a small network next to nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rdeepsense.training.bank import DenseBank, kept_entries

ENTRIES = 200_000  # drawn at once, unless one step takes more


class Masks:
    """Entries 1 / keep with the probability to keep, else 0, before the layers that drop.

    Steps share a draw in blocks, each with its own seed, so that the masks of a step depend on
    its number alone.
    """

    def __init__(
        self,
        bank: DenseBank,
        rows: int,
        widths: Sequence[int],
        seed: int,
        entries: int = ENTRIES,
    ) -> None:
        self._seed = seed
        sizes = [bank.size * rows * width for width in widths]
        step = sum(size for size, drops in zip(sizes, bank.drops, strict=True) if drops)
        self.block = max(1, entries // max(1, step))
        self._drawn: list[tuple[Tensor, Tensor, Tensor]] = []  # masks, threshold, keep_prob
        columns: list[Sequence[Tensor | None]] = []
        for layer, width in enumerate(widths):
            if not bank.drops[layer]:
                columns.append([None] * self.block)
                continue
            masks = torch.empty(self.block, bank.size, rows, width)
            self._drawn.append((masks, bank.threshold(layer), bank.keep_prob(layer)))
            columns.append(masks.unbind())
        self._steps = list(zip(*columns, strict=True))
        self._present = -1

    def of(self, step: int) -> tuple[Tensor | None, ...]:
        """Return one mask for each layer; None where nothing is dropped."""
        block, place = divmod(step, self.block)
        if block != self._present:
            self._draw(block)
        return self._steps[place]

    def _draw(self, block: int) -> None:
        # Random numbers are what dropout costs, and this generator is faster than torch's.
        rng = np.random.Generator(np.random.SFC64((self._seed, block)))
        for masks, threshold, keep_prob in self._drawn:
            draws = (masks.numel() + 3) // 4
            bits = rng.integers(-(2**63), 2**63 - 1, draws, dtype=np.int64, endpoint=True)
            kept = kept_entries(torch.from_numpy(bits), threshold, masks.shape)
            masks.copy_(kept).div_(keep_prob)
        self._present = block
