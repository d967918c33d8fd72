"""The periodic embeddings of a bank with the gradient written out, for `DenseStep`.

With a = 2 pi c z of each input and frequency, s = [sin(a), cos(a)], e = relu(W s + b), and g the
gradient of e where e > 0, else 0:

    d loss / d b = sum of g over rows,   d loss / d W = g s^T,   d = W^T g,
    d loss / d c = sum over rows of 2 pi z (d_sin cos(a) - d_cos sin(a))

Rows are the last axis throughout, as in `StackedEmbedding`. Whole periods are not taken off the
angles: training rows have few of them, and single bits do not matter here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from rdeepsense.guard import EMBEDDING_REACH
from rdeepsense.training.stacked_embedding import StackedEmbedding

TOGETHER = 1 << 17  # numbers of waves
_where_positive = torch.ops.aten.threshold_backward.grad_input


class _Part(NamedTuple):
    """What belongs to a few members, as views; sines and cosines are the halves of waves."""

    frequency: Tensor
    weight: Tensor
    waves: Tensor
    sine: Tensor
    cosine: Tensor
    angles: Tensor
    of_waves: Tensor
    of_sine: Tensor
    of_cosine: Tensor
    of_frequency: Tensor
    of_weight: Tensor
    e: Tensor
    of_e: Tensor


class EmbeddingStep:
    """Forward and backward on one batch after the other, in memory that is kept.

    A few members at a time, so that their waves stay in the processor's cache.
    """

    def __init__(self, embedding: StackedEmbedding, rows: int, gradients: list[Tensor]) -> None:
        """Prepare for batches of so many rows; gradients are those of c, W and b, to be filled."""
        members, inputs, width, waves = embedding.weight.shape
        self._inputs = inputs
        self._bias, self._of_bias = embedding.bias.data.flatten(1, 2), gradients[2].flatten(1, 2)
        new = embedding.weight.data.new_empty
        self._read = new(members, inputs * (1 + width), rows)
        self._near = new(inputs, 1, rows)
        self._e, self._back = (new(members, inputs * width, rows) for _ in range(2))
        each = max(1, TOGETHER // (inputs * waves * rows))
        shape = (inputs, 2, waves // 2, rows)
        angles, of_waves = new(each, inputs, waves // 2, rows), new(each, *shape)
        every = new(members, *shape)
        self._parts = []
        for start in range(0, members, each):
            own = slice(start, start + each)
            here, back = every[own], of_waves[: len(every[own])]
            part = _Part(
                frequency=embedding.frequency.data[own],
                weight=embedding.weight.data[own].flatten(0, 1),
                waves=here.flatten(2, 3).flatten(0, 1),
                sine=here[:, :, 0],
                cosine=here[:, :, 1],
                angles=angles[: len(here)],
                of_waves=back.flatten(2, 3).flatten(0, 1),
                of_sine=back[:, :, 0],
                of_cosine=back[:, :, 1],
                of_frequency=gradients[0][own],
                of_weight=gradients[1][own].flatten(0, 1),
                e=self._e[own].view(-1, width, rows),
                of_e=self._back[own].view(-1, width, rows),
            )
            self._parts.append(part)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the first layer reads of a batch (rows, inputs): (K, rows, numbers)."""
        by_input, near = x.T, self._near
        torch.clamp(by_input.unsqueeze(1), -EMBEDDING_REACH, EMBEDDING_REACH, out=near)
        near.mul_(2 * math.pi)
        for part in self._parts:
            angles = torch.mul(part.frequency, near, out=part.angles)
            torch.sin(angles, out=part.sine)
            torch.cos(angles, out=part.cosine)
            torch.bmm(part.weight, part.waves, out=part.e)
        self._read[:, : self._inputs] = by_input
        torch.add(self._e, self._bias, out=self._read[:, self._inputs :]).relu_()
        return self._read.mT

    def backward(self, h: Tensor, d: Tensor, weight: Tensor) -> None:
        """Fill the gradients; h is what the first layer read, d the gradient of its sums.

        `weight` is that layer's. Where inputs are dropped, d is divided by the keep probability.
        """
        e, back = h.mT[:, self._inputs :], self._back
        torch.bmm(weight[:, self._inputs :], d.mT, out=back)
        _where_positive(back, e, 0, grad_input=back)
        torch.sum(back, 2, keepdim=True, out=self._of_bias)
        for part in self._parts:
            torch.bmm(part.of_e, part.waves.mT, out=part.of_weight)
            torch.bmm(part.weight.mT, part.of_e, out=part.of_waves)
            of_angles = torch.mul(part.of_sine, part.cosine, out=part.angles)
            of_angles.addcmul_(part.of_cosine, part.sine, value=-1).mul_(self._near)
            torch.sum(of_angles, 3, keepdim=True, out=part.of_frequency)
