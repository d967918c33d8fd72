"""The delta method: the variance that dropout gives the mean, from one forward and one backward.

A mask z multiplies h by z_i / (1 - p), which has mean 1 and variance p / (1 - p). To first order
in the masks, all drawn independently,

    Var[mu] = sum over dropout layers, sum_i (h_i dmu/dh_i)^2 p / (1 - p)

Where one mask entry multiplies several numbers (a channel, all steps of a sequence), the products
h dmu/dh are summed over those before the square.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from rdeepsense.dropout import StochasticNetwork
from rdeepsense.dropout.layers import dropped
from rdeepsense.errors import InputError
from rdeepsense.heads import Params

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
