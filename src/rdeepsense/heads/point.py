"""A point estimate, for MC dropout, which trains with the squared error alone (section 3.2.1)."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

from torch import Tensor

from rdeepsense.distributions import Gaussian
from rdeepsense.errors import InputError
from rdeepsense.heads.base import Head, match
from rdeepsense.link import Column, Link, LocationWidth


class PointParams(NamedTuple):
    """A value per output, and nothing about how sure it is."""

    mean: Tensor

    def nll(self, y: Tensor) -> Tensor:
        """Return that of N(mean, 1) in standardised units: the squared error up to constants."""
        return 0.5 * (self.error(y) + math.log(2 * math.pi))

    def error(self, y: Tensor) -> Tensor:
        """Return (y - mean)^2."""
        return (match(y, self.mean) - self.mean) ** 2

    def spread(self) -> Tensor:
        return self.mean.new_ones(())

    def information(self) -> Tensor:
        """Refuse: without a spread there is no Fisher information."""
        raise InputError("a point estimate has no Fisher information; use a distribution head")

    def numpy(self) -> Gaussian:
        mean = self.mean.detach().cpu().double().numpy()
        return Gaussian(mean, 1.0)


class PointHead(Head):
    """A head whose columns are the values."""

    link: ClassVar[Link] = LocationWidth(Column(0), None)

    def forward(self, raw: Tensor) -> PointParams:
        return PointParams(raw)

    def gradient(
        self, raw: Tensor, y: Tensor, nll_share: Tensor, error_share: Tensor, beta: float
    ) -> tuple[Tensor]:
        """Use d nll / d mean = mean - y, d error / d mean = 2 (mean - y)."""
        return ((raw - match(y, raw)).mul_(nll_share + 2 * error_share),)
