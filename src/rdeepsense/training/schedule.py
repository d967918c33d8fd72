"""How long to train and at which rate; moving averages of weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from rdeepsense.training.bank import Bank

# --------------------------------------------------------------------------------------------------
# Rows, schedule and record of a training run
# --------------------------------------------------------------------------------------------------

STEPS = (2_500, 4_000)  # for small tables and for large ones
BATCH = (32, 1_024)
EVALUATIONS = 50
FEWEST_EPOCHS = 2


@dataclass(frozen=True)
class Rows:
    """Rows on the device: inputs, targets and, where they differ, weights of mean 1.

    Weights are one per row, or one per member and row.
    """

    x: Tensor
    y: Tensor
    weight: Tensor | None = None
    copies: int = 0  # of each row, all below the rows themselves; an epoch is no longer for them

    def __len__(self) -> int:
        return len(self.x)

    @property
    def total(self) -> int:
        """Rows of an epoch."""
        return len(self) // (1 + self.copies)

    def turn_to(self, window: int) -> None:
        """Bring the rows of this window; in memory every window is the whole table."""

    def signature(self) -> list[Tensor | str | None]:
        """Return what a checkpoint's fingerprint is made of."""
        return [self.x, self.y, self.weight]


@dataclass(frozen=True)
class Schedule:
    """The length, pace and seed of a run. `patience` counts evaluations without a new best."""

    steps: int
    batch_size: int
    learning_rate: float
    evaluate_every: int
    patience: int
    seed: int
    stop_at: int | None = None  # a step to end at, with the learning rate still that of `steps`
    together: int = 1  # members in a row that share one best step, that of their mean NLL
    adversarial: float = 0.0  # size of the fast gradient sign step, in scaled inputs

    @property
    def last_step(self) -> int:
        return self.steps if self.stop_at is None else self.stop_at

    @classmethod
    def of(
        cls,
        rows: int,
        validation_rows: int,
        learning_rate: float,
        seed: int,
        epochs: int | None = None,
        batch_size: int | None = None,
        most_steps: int | None = None,
    ) -> Schedule:
        """Return the default recipe: 2,500 to 4,000 steps, batches that grow with the table.

        With `most_steps` it is shorter, but never less than two epochs.

        Validation takes place about 50 times, less often when it would cost more than a sixth of
        the training (a validation row costs a third of a training row).
        """
        if batch_size is None:
            batch_size = _clip(2 ** round(math.log2(max(rows, 2) / 100)), BATCH)
        per_epoch = max(1, rows // batch_size)
        if epochs is None:
            steps = min(_clip(25 * per_epoch, STEPS), most_steps or STEPS[1])
            epochs = max(FEWEST_EPOCHS, math.ceil(steps / per_epoch))
        steps = epochs * per_epoch
        costly = math.ceil(2 * validation_rows / batch_size)
        evaluate_every = min(steps, max(1, steps // EVALUATIONS, costly))
        return cls(steps, batch_size, learning_rate, evaluate_every, EVALUATIONS // 2, seed)

    def learning_rates(self) -> Tensor:
        """Return a cosine, lr/2 (1 + cos(pi step / steps)), one rate for every step."""
        step = torch.arange(self.steps, dtype=torch.float64)
        return (0.5 * self.learning_rate * (1 + torch.cos(math.pi * step / self.steps))).float()


@dataclass
class TrainingRecord:
    """The course of a run. Lists hold one value per member; `history` one list per evaluation."""

    best_nll: list[float]
    best_step: list[int]
    steps: int
    seconds: float
    interrupted: bool
    resumed_at: int | None
    evaluated_at: list[int] = field(default_factory=list)
    history: list[list[float]] = field(default_factory=list)


def _clip(value: int, bounds: tuple[int, int]) -> int:
    return max(bounds[0], min(bounds[1], value))


# --------------------------------------------------------------------------------------------------
# A moving average of the weights
#
# The best step often comes while the learning rate is still high and the weights jump from batch to
# batch; their average lies in the middle (Polyak & Juditsky 1992).
# --------------------------------------------------------------------------------------------------

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
