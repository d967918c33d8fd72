"""The paper's architecture: fully-connected layers with ReLU between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn


def dense(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
    """inputs -> hidden[0] -> ... -> outputs. The paper's is ``hidden=(500, 500, 500)``."""
    layers: list[nn.Module] = []
    for width_in, width_out in pairwise((inputs, *hidden)):
        layers += [nn.Linear(width_in, width_out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear((inputs, *hidden)[-1], outputs))
