"""Monte Carlo dropout as the reference: the variance of the mean over k passes with masks drawn."""

from __future__ import annotations

import torch
from torch import Tensor

from rdeepsense.dropout import StochasticNetwork
from rdeepsense.heads import Params

CHUNK = 8_192  # rows times passes of one batch


def by_sampling(
    network: StochasticNetwork,
    x: Tensor,
    samples: int = 100,
    seed: int = 0,
    chunk: int = CHUNK,
) -> tuple[Params, Tensor]:
    """Return the single pass, and the population variance (rows, outputs) over `samples` passes.

    Sums are taken of the distances to the single pass, in float64, so that they do not cancel.
    """
    network = network.twin().eval()
    with torch.no_grad():
        with network.drawing(seed, x.device):
            params = network(x)
        centre: Tensor = next(iter(params))
        first = torch.zeros_like(centre, dtype=torch.float64)
        second = torch.zeros_like(first)
        with network.sampling(), network.drawing(seed, x.device):
            left = samples
            while left:
                passes = min(left, max(1, chunk // len(x)))
                drawn: Tensor = next(iter(network(x.repeat(passes, *[1] * (x.ndim - 1)))))
                away = (drawn.reshape(passes, *centre.shape) - centre).double()
                first += away.sum(0)
                second += away.square().sum(0)
                left -= passes
    variance = second / samples - (first / samples) ** 2
    return params, variance.clamp_min(0).to(centre)
