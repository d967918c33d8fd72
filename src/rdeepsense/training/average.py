"""A moving average of the weights, which is validated and kept.

The best step often comes while the learning rate is still high and the weights jump from batch to
batch; their average lies in the middle (Polyak & Juditsky 1992).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from rdeepsense.training.bank import Bank

REACH = 1 / 50  # of the schedule's steps: how far back the average looks
EVERY = 4  # steps


class MovingAverage:
    """average <- average + share (weights - average), every few steps."""

    def __init__(self, bank: Bank, steps: int) -> None:
        self._present = bank.state_dict()  # the tensors of the bank themselves
        self.tensors = {name: value.clone() for name, value in self._present.items()}
        self._steps = steps
        smooth = [name for name, value in self._present.items() if value.is_floating_point()]
        self._counts = [name for name in self._present if name not in smooth]
        self._from = [self._present[name] for name in smooth]
        self._into = [self.tensors[name] for name in smooth]

    def update(self, step: int) -> None:
        """Move towards the weights after this step; a young run has less to look back on."""
        share = EVERY / min(REACH * self._steps, step / 5)
        torch._foreach_lerp_(self._into, self._from, min(1.0, share))
        for name in self._counts:  # of batches that a normalisation has seen
            self.tensors[name].copy_(self._present[name])

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take up a saved average."""
        for name, value in self.tensors.items():
            value.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the average in the weights' place, and the weights back afterwards."""
        aside = [value.clone() for value in self._present.values()]
        for value, average in zip(self._present.values(), self.tensors.values(), strict=True):
            value.copy_(average)
        try:
            yield
        finally:
            for value, before in zip(self._present.values(), aside, strict=True):
                value.copy_(before)
