"""What a head is: the network's last module, and the parameters it gives.

A head turns the numbers of the last layer into a NamedTuple of tensors, all of one shape
``(..., outputs)``. A bank of K networks adds K as the leading axis. Every parameter tuple answers
``nll(y)`` and ``error(y)`` entry by entry, and ``numpy()`` gives the distribution they stand for.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from rdeepsense.distributions import AnyDistribution
from rdeepsense.errors import InputError


class Params(Protocol):
    """The parameters of a predictive distribution, as tensors."""

    def nll(self, y: Tensor) -> Tensor:
        """Full negative log-likelihood of y, entry by entry."""

    def error(self, y: Tensor) -> Tensor:
        """The point-estimate error that alpha weighs against the likelihood."""

    def spread(self) -> Tensor:
        """The variance-like parameter that beta-NLL weighs by."""

    def numpy(self) -> AnyDistribution:
        """The distribution these parameters stand for."""

    def __iter__(self) -> Any: ...


class Head(nn.Module):
    """Base of all heads. `columns_per_output` is how wide the last layer must be."""

    columns_per_output: ClassVar[int]
    # What the added columns start at: weights 0, and this bias, so that a converted network first
    # predicts one and the same spread, about that of a standardised target.
    start: ClassVar[float] = 0.0

    def __init__(self, outputs: int, members: int | None = None) -> None:
        super().__init__()
        self.outputs = outputs
        self.members = members

    @property
    def columns(self) -> int:
        return self.outputs * self.columns_per_output

    @property
    def entries(self) -> int:
        """Of how many numbers the loss of a row is the mean."""
        return self.outputs

    def gradient(
        self, raw: Tensor, y: Tensor, nll_share: Tensor, error_share: Tensor, beta: float
    ) -> tuple[Tensor, ...]:
        """The gradient by `raw`, then by each parameter of the head itself, of

            sum over entries of nll_share spread^beta nll + error_share error,  spread held constant

        with shares of shape (K, 1, 1) or, where rows weigh differently, (K, rows, 1). A head may do
        without: autograd then finds the gradient, which takes small networks several times longer.
        """
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"outputs={self.outputs}"


def match(y: Tensor, like: Tensor) -> Tensor:
    """Give y the shape of `like`, or refuse: silent broadcasting would train on wrong pairs.

    Accepted: the same shape; that shape without the members' axis; one output without its axis.
    """
    if like.shape[-1] == 1 and y.shape == like.shape[:-1]:
        y = y.unsqueeze(-1)
    if y.shape == like.shape or (like.ndim > 2 and y.shape == like.shape[1:]):
        return y
    raise InputError(
        f"y has shape {tuple(y.shape)}, the network's output {tuple(like.shape)}; they must agree"
    )


def inverse_softplus(value: float) -> float:
    """x with softplus(x) = value."""
    return float(torch.log(torch.expm1(torch.tensor(value, dtype=torch.float64))))
