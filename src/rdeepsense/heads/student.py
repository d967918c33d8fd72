"""A heavy-tailed head for real sensors: Student-t with one learned df per output."""

from __future__ import annotations

import copy
import math
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rdeepsense import link
from rdeepsense.distributions import StudentT
from rdeepsense.heads.base import Head, Scaling, inverse_softplus, match
from rdeepsense.link import Column, Link, LocationWidth

SCALE_FLOOR = 1e-3
DF_FLOOR = 2.0 + 1e-3  # the std of a Student-t is finite only above 2
START_DF = 6.0
DF_PACE = 5.0  # Adam moves every number alike, and this one has further to go than a weight


class StudentTParams(NamedTuple):
    """t(loc, scale, df), one per output."""

    loc: Tensor
    scale: Tensor
    df: Tensor

    def nll(self, y: Tensor) -> Tensor:
        """Return the NLL with all constants, G the gamma function and z = (y - loc) / scale:

        log G(df/2) - log G((df+1)/2) + log(df pi)/2 + log scale + (df+1)/2 log(1 + z^2/df)
        """
        z = (match(y, self.loc) - self.loc) / self.scale
        df = self.df
        return (
            torch.lgamma(df / 2)
            - torch.lgamma((df + 1) / 2)
            + 0.5 * torch.log(math.pi * df)
            + torch.log(self.scale)
            + (df + 1) / 2 * torch.log1p(z**2 / df)
        )

    def error(self, y: Tensor) -> Tensor:
        """Return |y - loc|: a squared error would bring back the outliers that the tail absorbs."""
        return (match(y, self.loc) - self.loc).abs()

    def spread(self) -> Tensor:
        return self.scale**2

    def information(self) -> Tensor:
        """Return (df + 1) / ((df + 3) scale^2)."""
        return (self.df + 1) / ((self.df + 3) * self.scale**2)

    def numpy(self) -> StudentT:
        loc, scale, df = (t.detach().cpu().double().numpy() for t in self)
        return StudentT(loc, scale, df)


class StudentHead(Head):
    """Columns [loc..., s...] -> t(loc, softplus(s) + floor, df); df = 2 + softplus(one number)."""

    link: ClassVar[Link] = LocationWidth(Column(0), link.add(link.softplus(Column(1)), SCALE_FLOOR))
    start: ClassVar[tuple[float, ...]] = (inverse_softplus(1.0),)
    scaling: ClassVar[Scaling | None] = "robust"
    heavy_tailed: ClassVar[bool] = True
    automatic: ClassVar[bool] = True

    def __init__(self, outputs: int, members: int | None = None) -> None:
        super().__init__(outputs, members)
        shape = (outputs,) if members is None else (members, 1, outputs)
        self.raw_df = nn.Parameter(torch.full(shape, inverse_softplus(START_DF - 2) / DF_PACE))

    def forward(self, raw: Tensor) -> StudentTParams:
        loc, s = raw.split(self.outputs, dim=-1)
        df = functional.softplus(DF_PACE * self.raw_df) + DF_FLOOR
        return StudentTParams(loc, functional.softplus(s) + SCALE_FLOOR, df.expand_as(loc))

    def unit(self) -> StudentT:
        with torch.no_grad():
            raw = torch.zeros(1, self.columns, dtype=torch.float64)
            df = copy.deepcopy(self).cpu().double()(raw).df[0].numpy()
        return StudentT(np.zeros(self.outputs), 1.0, df)

    def gradient(
        self, raw: Tensor, y: Tensor, nll_share: Tensor, error_share: Tensor, beta: float
    ) -> tuple[Tensor, Tensor]:
        """Use, with z = (loc - y) / scale, q = z^2 / df and g = (df + 1) q / (1 + q):

        d nll / d loc = g / (loc - y),    d nll / d scale = (1 - g) / scale,
        2 d nll / d df = psi(df / 2) - psi((df + 1) / 2) + 1 / df + log(1 + q) - g / df
        """
        loc, s = raw.split(self.outputs, dim=-1)
        scale = functional.softplus(s).add_(SCALE_FLOOR)
        own = DF_PACE * self.raw_df
        df = functional.softplus(own).add_(DF_FLOOR)
        if beta:
            nll_share = nll_share * scale ** (2 * beta)
        r = loc - match(y, loc)
        z = r / scale
        square = z * z
        q = square / df
        pull = ((df + 1) / df) / (1 + q)
        g = pull * square
        of_loc = pull.mul_(z).div_(scale).mul_(nll_share).addcmul_(r.sign(), error_share)
        of_s = (1 - g).div_(scale).mul_(torch.sigmoid(s)).mul_(nll_share)
        fixed = torch.digamma(df / 2) - torch.digamma((df + 1) / 2) + 1 / df
        of_df = torch.log1p(q).sub_(g.div_(df)).add_(fixed).mul_(nll_share).sum(1, keepdim=True)
        of_own = of_df * torch.sigmoid(own) * (DF_PACE / 2)
        return torch.cat([of_loc, of_s], -1), of_own
