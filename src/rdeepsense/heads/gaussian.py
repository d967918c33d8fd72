"""The paper's head for regression: a mean and a softplus variance (section 3.1.2)."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rdeepsense import link
from rdeepsense.distributions import Gaussian
from rdeepsense.heads.base import Head, inverse_softplus, match
from rdeepsense.link import Column, Link, LocationWidth

VARIANCE_FLOOR = 1e-4


class GaussianParams(NamedTuple):
    """N(mean, var), one per output."""

    mean: Tensor
    var: Tensor

    def nll(self, y: Tensor) -> Tensor:
        """Return 1/2 log(2 pi var) + (y - mean)^2 / (2 var); the paper drops the constant."""
        y = match(y, self.mean)
        return 0.5 * (torch.log(2 * math.pi * self.var) + (y - self.mean) ** 2 / self.var)

    def error(self, y: Tensor) -> Tensor:
        """Return (y - mean)^2."""
        return (match(y, self.mean) - self.mean) ** 2

    def spread(self) -> Tensor:
        return self.var

    def information(self) -> Tensor:
        """Return 1 / var."""
        return 1 / self.var

    def numpy(self) -> Gaussian:
        mean, var = (t.detach().cpu().double().numpy() for t in self)
        return Gaussian(mean, var**0.5)


class GaussianHead(Head):
    """Columns [mean..., v...] -> N(mean, softplus(v) + floor): softplus gives the VARIANCE."""

    link: ClassVar[Link] = LocationWidth(
        Column(0), link.sqrt(link.add(link.softplus(Column(1)), VARIANCE_FLOOR))
    )
    start: ClassVar[tuple[float, ...]] = (inverse_softplus(1.0),)
    automatic: ClassVar[bool] = True

    def forward(self, raw: Tensor) -> GaussianParams:
        mean, v = raw.split(self.outputs, dim=-1)
        return GaussianParams(mean, functional.softplus(v) + VARIANCE_FLOOR)

    def unit(self) -> Gaussian:
        return Gaussian(np.zeros(self.outputs), 1.0)

    def gradient(
        self, raw: Tensor, y: Tensor, nll_share: Tensor, error_share: Tensor, beta: float
    ) -> tuple[Tensor]:
        """Use d nll / d mean = r / var, d nll / d var = (1 - r^2 / var) / (2 var), r = mean - y."""
        mean, v = raw.split(self.outputs, dim=-1)
        var = functional.softplus(v).add_(VARIANCE_FLOOR)
        if beta:
            nll_share = nll_share * var**beta
        r = mean - match(y, mean)
        z = r / var
        of_v = (1 - z * r).div_(var).mul_(torch.sigmoid(v)).mul_(nll_share / 2)
        return (torch.cat([z.mul_(nll_share).addcmul_(r, error_share, value=2), of_v], -1),)
