"""The periodic embeddings of a bank's members, stacked as the weights of its layers are."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rdeepsense.networks.periodic import PeriodicEmbedding, sines_cosines


class StackedEmbedding(nn.Module):
    """K embeddings of one shape (see `networks.periodic`): x (K, rows, inputs) -> [x, e].

    Rows are the last axis inside, so that the products of each input are of wide matrices. All
    tensors have K first: c (K, inputs, frequencies, 1), W (K, inputs, width, 2 frequencies) and
    b (K, inputs, width, 1). Of these only W decays.
    """

    def __init__(self, members: Sequence[PeriodicEmbedding]) -> None:
        super().__init__()
        self.frequency, self.weight, self.bias = (
            nn.Parameter(torch.stack([m.get_parameter(name).detach() for m in members]))
            for name in ("frequency", "weight", "bias")
        )
        for flat in (self.frequency, self.bias):
            flat.data = flat.data.unsqueeze(-1)

    @property
    def waves(self) -> int:
        """The sines and cosines that a member makes of one row."""
        return self.weight[0, :, 0].numel()

    def forward(self, x: Tensor) -> Tensor:
        waves = sines_cosines(x.mT.unsqueeze(-2), self.frequency, -2)
        e = (self.weight @ waves + self.bias).relu()
        return torch.cat([x, e.flatten(1, 2).mT], -1)
