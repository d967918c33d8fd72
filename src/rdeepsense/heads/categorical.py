"""The paper's head for classification: a softmax over the classes (section 3.1.2)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rdeepsense.distributions import Categorical
from rdeepsense.errors import InputError
from rdeepsense.heads.base import Head, Scaling
from rdeepsense.link import Link, Softmax


class CategoricalParams(NamedTuple):
    """Categorical(softmax(logits)), classes along the last axis."""

    logits: Tensor

    def nll(self, y: Tensor) -> Tensor:
        """Return -log p(y), y the index of the class."""
        index = self.class_index(y)
        return -torch.log_softmax(self.logits, -1).gather(-1, index.unsqueeze(-1)).squeeze(-1)

    def error(self, y: Tensor) -> Tensor:
        """Return the Brier score: sum over classes of (1[y = k] - p_k)^2."""
        truth = functional.one_hot(self.class_index(y), self.logits.shape[-1])
        return ((truth - torch.softmax(self.logits, -1)) ** 2).sum(-1)

    def spread(self) -> Tensor:
        raise InputError("beta-NLL weighs by a variance, which classes do not have; use beta=0")

    def information(self) -> Tensor:
        """Return p (1 - p)."""
        probs = torch.softmax(self.logits, -1)
        return probs * (1 - probs)

    def numpy(self) -> Categorical:
        logits = self.logits.detach().cpu().double()
        return Categorical(torch.softmax(logits, -1).numpy())

    def class_index(self, y: Tensor) -> Tensor:
        """Give y the shape of the logits without their class axis, or refuse."""
        shape = self.logits.shape[:-1]
        if y.shape != shape and not (len(shape) > 1 and y.shape == shape[1:]):
            raise InputError(
                f"y has shape {tuple(y.shape)}, the network's output {tuple(self.logits.shape)}; "
                f"y must hold class indices of shape {tuple(shape)}"
            )
        return y.long().expand(shape)


class CategoricalHead(Head):
    """A head whose columns are the logits."""

    link: ClassVar[Link] = Softmax()
    scaling: ClassVar[Scaling | None] = None
    fewest_outputs: ClassVar[int] = 2

    def forward(self, raw: Tensor) -> CategoricalParams:
        return CategoricalParams(raw)

    @property
    def entries(self) -> int:
        return 1

    def gradient(
        self, raw: Tensor, y: Tensor, nll_share: Tensor, error_share: Tensor, beta: float
    ) -> tuple[Tensor]:
        """Use d nll / d logits = e = p - truth, d Brier / d logits = 2 p (e - sum p e)."""
        if beta:
            CategoricalParams(raw).spread()
        probs = torch.softmax(raw, -1)
        index = CategoricalParams(raw).class_index(y).unsqueeze(-1)
        e = probs.scatter_add(-1, index, probs.new_full((), -1.0).expand_as(index))
        of_error = probs * (e - (probs * e).sum(-1, keepdim=True))
        return (e.mul_(nll_share).add_(of_error.mul_(2 * error_share)),)
