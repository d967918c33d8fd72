"""Periodic embeddings of the inputs before dense layers (Gorishniy et al. 2022).

    e_j = ReLU(W_j [sin, cos](2 pi c_j z_j) + b_j),     the dense layers read [z, e_1, ..., e_d]

with z the standardised inputs and c_j some frequencies of input j's own, drawn N(0, std^2) and then
learnt. A network of plain dense layers learns slow changes along an input first; these let it learn
fast ones as well, and the inputs beside them keep the slow ones easy.

The sines read z up to EMBEDDING_REACH standard deviations, the same in every form of a model: where
a row is absurdly far out they say nothing any more, and products of 32 bits would be all rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rdeepsense.errors import InputError
from rdeepsense.guard import EMBEDDING_REACH
from rdeepsense.networks.base import Shape, check_table
from rdeepsense.networks.dense import Dense, dense

NUMBERS = 1 << 24  # of sines and cosines that predictions of many rows hold at once


@dataclass(frozen=True)
class Periodic:
    """Dense layers that read the inputs and periodic embeddings of them.

    Parameters
    ----------
    hidden : widths of the layers, one at least.
    frequencies : of each input.
    width : outputs of each input's embedding.
    std : standard deviation of the frequencies at the start, in periods per standard deviation of
        an input; larger ones for targets that change fast along an input.
    """

    hidden: Sequence[int] = (64, 64)
    frequencies: int = 16
    width: int = 8
    std: float = 0.3

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", Dense(self.hidden).hidden)
        if not self.hidden:
            raise InputError("hidden = () has no layer that could read the embeddings; give one")
        for name in ("frequencies", "width"):
            size = getattr(self, name)
            if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
                raise InputError(f"{name} = {size!r} is not a whole number of at least 1")
            object.__setattr__(self, name, int(size))
        number = isinstance(self.std, int | float) and not isinstance(self.std, bool)
        if not number or not 0 < self.std < math.inf:
            raise InputError(f"std = {self.std!r} is not a finite number > 0")

    def check(self, shape: Shape) -> None:
        """Refuse windows."""
        check_table(shape)

    def build(self, shape: Shape, outputs: int, member: int) -> nn.Sequential:
        """Build inputs -> [inputs, embeddings] -> hidden[0] -> ... -> outputs."""
        embedding = PeriodicEmbedding(shape[0], self.frequencies, self.width, self.std)
        return nn.Sequential(embedding, *dense(embedding.outputs, self.hidden, outputs))

    def arguments(self) -> dict[str, Any]:
        return asdict(self)


class PeriodicEmbedding(nn.Module):
    """Rows z (..., inputs) -> [z, e_1, ..., e_d] (..., inputs (1 + width))."""

    def __init__(self, inputs: int, frequencies: int, width: int, std: float) -> None:
        super().__init__()
        self.std = std
        self.frequency = nn.Parameter(torch.empty(inputs, frequencies))
        self.weight = nn.Parameter(torch.empty(inputs, width, 2 * frequencies))
        self.bias = nn.Parameter(torch.empty(inputs, width))
        # Without memory there are shapes alone: to draw some would import torch's compiler.
        if not self.frequency.is_meta:
            self.reset_parameters()

    @property
    def outputs(self) -> int:
        """The numbers that come out for one row."""
        return len(self.bias) + self.bias.numel()

    def reset_parameters(self) -> None:
        """Draw frequencies of this std, and weights as a Linear layer's."""
        bound = self.weight.shape[-1] ** -0.5
        nn.init.normal_(self.frequency, std=self.std)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, z: Tensor) -> Tensor:
        each = max(1, NUMBERS // (2 * self.frequency.numel()))
        if torch.is_grad_enabled() or len(z) <= each:
            return torch.cat([z, self._embedded(z)], -1)
        return torch.cat([z, torch.cat([self._embedded(part) for part in z.split(each)])], -1)

    def _embedded(self, z: Tensor) -> Tensor:
        waves = sines_cosines(z.unsqueeze(-1), self.frequency)
        e = torch.einsum("...jf,jwf->...jw", waves, self.weight) + self.bias
        return e.relu().flatten(-2)

    def extra_repr(self) -> str:
        inputs, width, waves = self.weight.shape
        return f"inputs={inputs}, frequencies={waves // 2}, width={width}"


def sines_cosines(z: Tensor, frequency: Tensor, axis: int = -1) -> Tensor:
    """Compute [sin, cos](2 pi frequency z) along an axis, along which z has one number.

    Whole periods are taken off before the product with 2 pi, which would round them.
    """
    periods = z.clamp(-EMBEDDING_REACH, EMBEDDING_REACH) * frequency
    angles = 2 * math.pi * (periods - periods.round())
    return torch.cat([angles.sin(), angles.cos()], axis)
