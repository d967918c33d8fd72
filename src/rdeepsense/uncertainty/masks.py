"""Epistemic variance of dropout masks: delta method, moment propagation, sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd
from torch.overrides import TorchFunctionMode

from rdeepsense.dropout import DropoutLayer, StochasticNetwork
from rdeepsense.dropout.layers import dropped
from rdeepsense.errors import InputError
from rdeepsense.heads import Params

# --------------------------------------------------------------------------------------------------
# Delta method: variance of the mean from one forward and one backward pass
#
# A mask z multiplies h by z_i / (1 - p), which has mean 1 and variance p / (1 - p). To first order
# in the masks, all drawn independently,
#
#     Var[mu] = sum over dropout layers, sum_i (h_i dmu/dh_i)^2 p / (1 - p)
#
# Where one mask entry multiplies several numbers (a channel, all steps of a sequence), the products
# h dmu/dh are summed over those before the square.
# --------------------------------------------------------------------------------------------------

# Whether one mask entry is a whole channel; None where the method has no rule.
BY_CHANNEL = {
    dropped: False,
    functional.dropout: False,
    functional.dropout1d: True,
    functional.dropout2d: True,
    functional.dropout3d: True,
    functional.alpha_dropout: None,
    functional.feature_alpha_dropout: None,
}
VALUES = 1 << 21  # of the gradients of several outputs that are held at once


class Site(NamedTuple):
    """One place where a mask would be drawn."""

    h: Tensor
    drop_prob: float
    by_channel: bool
    version: int  # of h, which a layer that works in place would raise

    def variance(self, gradient: Tensor, rows: int) -> Tensor:
        """Return this part of the sum, (outputs, rows); `gradient` is (outputs, *h.shape)."""
        moved = gradient * self.h
        if self.by_channel:
            moved = moved.flatten(3).sum(-1)
        squares = moved.square_().reshape(len(moved), rows, -1).sum(-1)
        return squares * (self.drop_prob / (1 - self.drop_prob))

    def check(self, rows: int) -> None:
        """Check that rows are the first axis, or the second of a mask for all steps, (1, rows)."""
        if rows not in (self.h.shape[0], *(self.h.shape[1:2] if self.h.shape[0] == 1 else ())):
            raise InputError(
                f"a mask has shape {tuple(self.h.shape)} for {rows} rows; the rows must be the "
                "first axis of whatever is dropped"
            )
        if self.h._version != self.version:
            raise InputError("a layer changes a dropout's output in place; use inplace=False")


def by_delta(network: StochasticNetwork, x: Tensor, values: int = VALUES) -> tuple[Params, Tensor]:
    """Return the single pass, and the masks' variance (rows, outputs) of its mean or logits."""
    network = network.twin()
    with network.sampling(), network.drawing(0, x.device), torch.enable_grad():
        with _Unmasked() as unmasked:
            params = network(x)
        mean: Tensor = next(iter(params))
        # Rows do not touch each other, so that in a sum over them each keeps its own gradient.
        sums = mean.sum(0)
        sites = unmasked.sites
        if not sites:
            raise InputError(
                "the network drops nothing: it has no dropout with a probability above 0"
            )
        rows, outputs = mean.shape
        for site in sites:
            site.check(rows)
        together = max(1, values // sum(site.h.numel() for site in sites))
        parts = [
            _variance(sums, sites, slice(first, first + together), rows)
            for first in range(0, outputs, together)
        ]
    return type(params)(*(p.detach() for p in params)), torch.cat(parts).T


def _variance(sums: Tensor, sites: Sequence[Site], outputs: slice, rows: int) -> Tensor:
    """Return (outputs, rows) of a few outputs, from their sums over the rows."""
    seeds = torch.eye(len(sums)).to(sums)[outputs]
    several = len(seeds) > 1
    gradients = torch.autograd.grad(
        sums if several else sums[outputs.start],
        [site.h for site in sites],
        seeds if several else None,  # with one given, torch imports sympy: half a second
        retain_graph=outputs.stop < len(sums),
        is_grads_batched=several,
        materialize_grads=True,
    )
    found = sums.new_zeros(len(seeds), rows)
    with torch.no_grad():
        for site, gradient in zip(sites, gradients, strict=True):
            found += site.variance(gradient if several else gradient[None], rows)
    return found


class _Unmasked(TorchFunctionMode):
    """A mode in which every dropout is noted and passes its input on whole: a mask at its mean."""

    def __init__(self) -> None:
        super().__init__()
        self.sites: list[Site] = []

    # Any: as torch's own signature has it.
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func not in BY_CHANNEL:
            return func(*args, **(kwargs or {}))
        by_channel = BY_CHANNEL[func]
        if by_channel is None:
            raise InputError(f"the delta method has no rule for {func.__name__}")
        return self._pass(by_channel, *args, **(kwargs or {}))

    def _pass(
        self,
        by_channel: bool,
        input: Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
    ) -> Tensor:
        if not training or p == 0:
            return input
        # A view, so that a way around the dropout (a residual) does not count.
        h = input.view_as(input) if input.requires_grad else input.detach().requires_grad_()
        self.sites.append(Site(h, p, by_channel, h._version))
        return h


# --------------------------------------------------------------------------------------------------
# Moment propagation (ApDeepSense, Yao et al. 2018)
#
# Every number is taken as a Gaussian that is independent of its neighbours:
#
#     dropout     m -> m,            v -> (v + m^2) / (1 - p) - m^2
#     linear      m -> W m + b,      v -> W^2 v
#     activation  m, v -> the first two moments of f(h), h ~ N(m, v)
#
# It is exact for one hidden layer without dropout on the inputs. In deeper networks the units of a
# layer share the masks below them; leaving out their covariance misses most of the variance.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Monte Carlo dropout: variance of the mean over k passes
# --------------------------------------------------------------------------------------------------

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
