"""Moment propagation (ApDeepSense, Yao et al. 2018): mean and variance, layer by layer.

Every number is taken as a Gaussian that is independent of its neighbours:

    dropout     m -> m,            v -> (v + m^2) / (1 - p) - m^2
    linear      m -> W m + b,      v -> W^2 v
    activation  m, v -> the first two moments of f(h), h ~ N(m, v)

It is exact for one hidden layer without dropout on the inputs. In deeper networks the units of a
layer share the masks below them; leaving out their covariance misses most of the variance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd

from rdeepsense.dropout import DropoutLayer, StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.heads import Params

NODES = 24  # of Gauss-Hermite quadrature; the integrands are smooth
KNOWN = "Linear, Conv1d, Conv2d, ReLU, Tanh, Sigmoid, Dropout, Flatten, Identity in Sequential"


def by_moments(network: StochasticNetwork, x: Tensor) -> tuple[Params, Tensor]:
    """Return the single pass, and the propagated variance (rows, outputs) of its mean or logits."""
    network = network.twin().eval()
    with torch.no_grad(), network.drawing(0, x.device):
        _, var = _through(network.body, x, torch.zeros_like(x))
        return network(x), var[..., : network.head.outputs]


def _through(module: nn.Module, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
    """Pass mean and variance through a module."""
    if isinstance(module, nn.Sequential):
        for child in module:
            mean, var = _through(child, mean, var)
        return mean, var
    if isinstance(module, _DropoutNd):
        return mean, _dropped(mean, var, module.p)
    if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
        var = _dropped(mean, var, getattr(module, "drop_prob", 0.0))
        return module(mean), _weighted(module, var)
    if isinstance(module, nn.ReLU):
        return _relu(mean, var)
    if isinstance(module, nn.Tanh | nn.Sigmoid):
        return _by_quadrature(module, mean, var)
    if isinstance(module, nn.Flatten | nn.Identity):
        return module(mean), module(var)
    if not (var.any() or any(isinstance(m, DropoutLayer | _DropoutNd) for m in module.modules())):
        known = module(mean)  # no mask stands before it
        return known, torch.zeros_like(known)
    raise InputError(f"moment propagation has no rule for {type(module).__name__}; it has: {KNOWN}")


def _dropped(mean: Tensor, var: Tensor, drop_prob: float) -> Tensor:
    return (var + drop_prob * mean**2) / (1 - drop_prob)


def _weighted(layer: nn.Linear | nn.Conv1d | nn.Conv2d, var: Tensor) -> Tensor:
    """Apply the layer with squared weights and no bias."""
    if isinstance(layer, nn.Linear):
        return functional.linear(var, layer.weight**2)
    if layer.padding_mode != "zeros":
        raise InputError(f"moment propagation has no rule for padding {layer.padding_mode!r}")
    convolve = functional.conv1d if isinstance(layer, nn.Conv1d) else functional.conv2d
    return convolve(
        var, layer.weight**2, None, layer.stride, layer.padding, layer.dilation, layer.groups
    )


def _relu(mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
    """Use, with a = m / s, E = m Phi(a) + s phi(a), E2 = (m^2 + v) Phi(a) + m s phi(a)."""
    if not var.any():  # before the first mask; numbers near 0 would be slow as well
        return functional.relu(mean), var
    std = var.clamp_min(torch.finfo(var.dtype).tiny).sqrt()
    a = mean / std
    cdf = torch.special.ndtr(a)
    density = torch.exp(-0.5 * a**2) * std / np.sqrt(2 * np.pi)
    first = mean * cdf + density
    second = (mean**2 + var) * cdf + mean * density
    return first, (second - first**2).clamp_min(0)


def _by_quadrature(
    activation: Callable[[Tensor], Tensor], mean: Tensor, var: Tensor
) -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    std = var.sqrt()
    first, second = torch.zeros_like(mean), torch.zeros_like(mean)
    centre = activation(mean)  # distances to it, so that small variances do not cancel
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        away = activation(mean + float(node) * std) - centre
        first += float(weight) * away
        second += float(weight) * away**2
    return centre + first, (second - first**2).clamp_min(0)
