"""A heavy-tailed head for real sensors: Student-t with one learned df per output."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from rdeepsense.distributions import StudentT
from rdeepsense.heads.base import Head, inverse_softplus, match

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
        """log G(df/2) - log G((df+1)/2) + log(df pi)/2 + log scale + (df+1)/2 log(1 + z^2/df)."""
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
        """|y - loc|: a squared error would bring back the outliers that the tail absorbs."""
        return (match(y, self.loc) - self.loc).abs()

    def spread(self) -> Tensor:
        return self.scale**2

    def numpy(self) -> StudentT:
        loc, scale, df = (t.detach().cpu().double().numpy() for t in self)
        return StudentT(loc, scale, df)


class StudentHead(Head):
    """Columns [loc..., s...] -> t(loc, softplus(s) + floor, df); df = 2 + softplus(one number)."""

    columns_per_output: ClassVar[int] = 2
    start: ClassVar[float] = inverse_softplus(1.0)

    def __init__(self, outputs: int, members: int | None = None) -> None:
        super().__init__(outputs, members)
        shape = (outputs,) if members is None else (members, 1, outputs)
        self.raw_df = nn.Parameter(torch.full(shape, inverse_softplus(START_DF - 2) / DF_PACE))

    def forward(self, raw: Tensor) -> StudentTParams:
        loc, s = raw.split(self.outputs, dim=-1)
        df = functional.softplus(DF_PACE * self.raw_df) + DF_FLOOR
        return StudentTParams(loc, functional.softplus(s) + SCALE_FLOOR, df.expand_as(loc))
