"""Dropout masks of many steps at once: for a small network they cost next to nothing then."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rdeepsense.training.bank import DenseBank

ENTRIES = 200_000  # drawn at once, unless one step takes more


class Masks:
    """Entries 1 / keep with the probability to keep, else 0, before the layers that drop.

    Steps share a draw in blocks, each with a seed of its own, so that the masks of a step depend on
    its number alone.
    """

    def __init__(self, bank: DenseBank, rows: int, widths: Sequence[int], seed: int) -> None:
        self._seed = seed
        self._thresholds: list[Tensor] = []
        self._inverse: list[Tensor] = []
        self._drawn: list[Tensor] = []
        step = sum(
            bank.size * rows * w for w, drops in zip(widths, bank.drops, strict=True) if drops
        )
        self.block = max(1, ENTRIES // max(1, step))
        nothing: list[Tensor | None] = [None] * self.block
        columns: list[Sequence[Tensor | None]] = []
        for layer, (width, drops) in enumerate(zip(widths, bank.drops, strict=True)):
            if not drops:
                columns.append(nothing)
                continue
            drawn = torch.empty(self.block, bank.size, rows, width)
            self._drawn.append(drawn)
            self._thresholds.append(bank.threshold(layer))
            self._inverse.append(1 / bank.keep_prob(layer))
            columns.append(drawn.unbind())
        self._steps = list(zip(*columns, strict=True))
        self._present = -1

    def of(self, step: int) -> tuple[Tensor | None, ...]:
        """One mask for each layer; None where nothing is dropped."""
        block, place = divmod(step, self.block)
        if block != self._present:
            self._draw(block)
        return self._steps[place]

    def _draw(self, block: int) -> None:
        # Random numbers are what dropout costs: this generator is twice as fast as torch's, and one
        # 64-bit draw serves four entries.
        rng = np.random.Generator(np.random.SFC64((self._seed, block)))
        for drawn, threshold, inverse in zip(
            self._drawn, self._thresholds, self._inverse, strict=True
        ):
            draws = (drawn.numel() + 3) // 4
            bits = rng.integers(-(2**63), 2**63 - 1, draws, dtype=np.int64, endpoint=True)
            entries = torch.from_numpy(bits).view(torch.int16)[: drawn.numel()].view_as(drawn)
            drawn.copy_(entries.le_(threshold)).mul_(inverse)
        self._present = block
