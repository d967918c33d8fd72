"""The interface of heads: the network's last module, and the parameters it gives.

A head turns the numbers of the last layer into a NamedTuple of tensors, all of one shape
``(..., outputs)``, the location (or the logits) first. A bank of K networks adds K as the leading
axis. Everything that depends on the head is in its own file: nobody else asks which head it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from rdeepsense.distributions import AnyDistribution, LocationScale
from rdeepsense.errors import InputError
from rdeepsense.link import Link, Softmax

Scaling = Literal["standard", "robust"]  # mean and std, or median and quartiles


class Params(Protocol):
    """The parameters of a predictive distribution, as tensors."""

    def nll(self, y: Tensor) -> Tensor:
        """Return the full negative log-likelihood of y, entry by entry."""

    def error(self, y: Tensor) -> Tensor:
        """Return the point-estimate error that alpha weighs against the likelihood."""

    def spread(self) -> Tensor:
        """Return the squared width, by which beta-NLL weighs."""

    def information(self) -> Tensor:
        """Return the Fisher information about the location, or about the logits, entry by entry."""

    def numpy(self) -> AnyDistribution:
        """Return the distribution that these parameters stand for."""

    def __iter__(self) -> Iterator[Tensor]: ...


class Head(nn.Module):
    """Base of all heads.

    A subclass names its `link`, which sets how wide the last layer must be and is what devices
    compute, and implements `forward` and, for numbers, `unit`. `register` makes it known by name.
    """

    link: ClassVar[Link]
    # What the columns added for each output start at: weights 0, and these biases, so that a
    # converted network first predicts one and the same spread, that of a standardised target.
    start: ClassVar[tuple[float, ...]] = ()
    scaling: ClassVar[Scaling | None] = "standard"  # of the targets; None for classes
    heavy_tailed: ClassVar[bool] = False  # preferred to others that are no better than chance
    automatic: ClassVar[bool] = False  # whether `likelihood="auto"` tries it
    fewest_outputs: ClassVar[int] = 1

    def __init__(self, outputs: int, members: int | None = None) -> None:
        super().__init__()
        self.outputs = outputs
        self.members = members

    @property
    def columns(self) -> int:
        """How wide the last layer must be."""
        return self.outputs * self.link.columns

    @property
    def is_classifier(self) -> bool:
        return isinstance(self.link, Softmax)

    @property
    def entries(self) -> int:
        """Of how many numbers the loss of a row is the mean."""
        return self.outputs

    def gradient(
        self, raw: Tensor, y: Tensor, nll_share: Tensor, error_share: Tensor, beta: float
    ) -> tuple[Tensor, ...]:
        """Return the gradient by `raw`, then by each parameter of the head itself, of

            sum over entries of nll_share spread^beta nll + error_share error,  spread held constant

        with shares of shape (K, 1, 1) or, where rows weigh differently, (K, rows, 1). A head may do
        without: autograd then finds the gradient, which takes small networks several times longer.
        """
        raise NotImplementedError

    def unit(self) -> LocationScale:
        """Return each output's distribution at location 0 and width 1, in its learned shape."""
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
    """Return x with softplus(x) = value."""
    return float(torch.log(torch.expm1(torch.tensor(value, dtype=torch.float64))))
