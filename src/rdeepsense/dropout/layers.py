"""Layers that drop parts of their input while training.

    z ~ Bernoulli(1 - drop_prob),  y = (x * z) W + b                              (equation 2)

z has the length of the layer's INPUT, biases are never dropped, and nothing is dropped after the
output layer, so that mean and variance share the last hidden mask. The paper scales the weights by
the keep probability at test time; here, as in torch, x is divided by it while training, which gives
the same function at test time.

A convolution's z has one entry per row and channel (Gal & Ghahramani 2015): neighbours in time or
place are too alike for single ones to be missed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.overrides import handle_torch_function, has_torch_function_unary

from rdeepsense import randomness


class DropoutLayer(nn.Module):
    """A torch layer that drops its own input in training mode.

    A layer becomes one of these in place, so that it stays where it is registered.
    """

    drop_prob: float

    @classmethod
    def become(cls, layer: nn.Module, drop_prob: float) -> None:
        """Turn a layer into one of these, in place."""
        layer.__class__ = cls
        layer.drop_prob = drop_prob  # type: ignore[assignment]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, drop_prob={self.drop_prob}"


def dropped(x: Tensor, drop_prob: float) -> Tensor:
    """Return x z / (1 - drop_prob), z drawn from the context's generator.

    It is torch's own dropout, which takes no generator, and like that one it can be overridden.
    """
    if has_torch_function_unary(x):
        found: Tensor = handle_torch_function(dropped, (x,), x, drop_prob)
        return found
    if not drop_prob:
        return x
    keep_prob, generator = 1 - drop_prob, randomness.current(x.device)
    if x.is_cuda:
        return torch._fused_dropout(x, keep_prob, generator)[0]
    return x * torch.empty_like(x).bernoulli_(keep_prob, generator=generator).div_(keep_prob)


def mask(like: Tensor, shape: Sequence[int], drop_prob: float) -> Tensor:
    """Draw z / (1 - drop_prob) of this shape."""
    return dropped(like.new_ones(shape), drop_prob)


class DropoutEntries(nn.Dropout):
    """A Dropout module of the user's own, whose z come from the context's generator."""

    def forward(self, x: Tensor) -> Tensor:
        return dropped(x, self.p) if self.training else x


class DropoutLinear(DropoutLayer, nn.Linear):
    """A Linear layer that drops entries of its input."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(dropped(x, self.drop_prob) if self.training else x)


class DropoutConv1d(DropoutLayer, nn.Conv1d):
    """A convolution that drops whole channels of its input, each for all of a row's times."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.drop_prob:
            x = x * mask(x, (*x.shape[:-1], 1), self.drop_prob)
        return super().forward(x)


class DropoutConv2d(DropoutLayer, nn.Conv2d):
    """A convolution that drops whole channels of its input, each for all of a row's places."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.drop_prob:
            x = x * mask(x, (*x.shape[:-2], 1, 1), self.drop_prob)
        return super().forward(x)
