"""Fitted Gaussian processes: plain tensors and the formulas that predict from them.

Several outputs share the kernel and the factorisation: given both, an output costs one more column
of weights, and its variance (on the standardised scale) is that of all the others.

    k(x, z) = s exp(-1/2 sum_j (x_j - z_j)^2 / l_j^2)

The squared-exponential kernel with one length per input (ARD) is the one that the paper's GP and
the published UCI tables take; the lengths say which inputs matter.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import torch
from torch import Tensor

CHUNK = 2_048  # rows at a time, which bounds the memory whatever the rows
JITTER = 1e-6  # of the kernel's scale, on the diagonal at the inducing points


@dataclass(frozen=True)
class GP:
    """The kernel's scale s and lengths l, and the variance of the noise."""

    lengths: Tensor
    scale: Tensor
    noise: Tensor

    def kernel(self, x: Tensor, z: Tensor) -> Tensor:
        """Return k(x, z), (rows of x, rows of z)."""
        x, z = x / self.lengths, z / self.lengths
        square = x.square().sum(1)[:, None] + z.square().sum(1) - 2 * x @ z.T
        return self.scale * torch.exp(-0.5 * square.clamp_min(0.0))

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means (rows, outputs) and variances (rows, 1 or outputs), noise included."""
        raise NotImplementedError

    def to(self, device: torch.device) -> Self:
        """Move to a device, laid out row by row as a file has it: BLAS rounds by the layout."""
        moved = {name: t.to(device).contiguous() for name, t in self._tensors().items()}
        return replace(self, **moved)

    def arrays(self) -> dict[str, Tensor]:
        """Return what a model file holds."""
        return self._tensors()

    @classmethod
    def restored(cls, arrays: dict[str, Tensor]) -> Self:
        return cls(**arrays)

    def _tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class ExactGP(GP):
    """A process conditioned on every training row (Rasmussen & Williams 2006, algorithm 2.1).

    With C = K + noise diag(1 / w) = R R', a row of weight w being w observations:
        mean(x) = k(x, X) C^-1 y,   var(x) = s - |R^-1 k(X, x)|^2 + noise
    """

    x: Tensor
    root: Tensor  # R
    alpha: Tensor  # C^-1 y, (rows, outputs)

    @classmethod
    def conditioned(cls, prior: GP, x: Tensor, y: Tensor, weight: Tensor) -> ExactGP:
        root = factor(prior.kernel(x, x) + torch.diag(prior.noise / weight))
        alpha = torch.cholesky_solve(y, root)
        return cls(prior.lengths, prior.scale, prior.noise, x, root, alpha)

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        across = self.kernel(self.x, x)
        explained = torch.linalg.solve_triangular(self.root, across, upper=False).square().sum(0)
        var = (self.scale - explained).clamp_min(0.0) + self.noise
        return across.T @ self.alpha, var[:, None]

    def arrays(self) -> dict[str, Tensor]:
        """Return the root as its nonzero half: computed anew it might differ in the last bit."""
        rows = torch.tril_indices(*self.root.shape)
        return self._tensors() | {"root": self.root[rows[0], rows[1]]}

    @classmethod
    def restored(cls, arrays: dict[str, Tensor]) -> Self:
        n = len(arrays["x"])
        root, half, start = torch.zeros(n, n, dtype=torch.float64), arrays["root"], 0
        for row in range(n):  # one by one: the indices of all would take more than the matrix
            root[row, : row + 1] = half[start : start + row + 1]
            start += row + 1
        return cls(**{**arrays, "root": root})


@dataclass(frozen=True)
class SparseGP(GP):
    """A process conditioned on M inducing values u = L v at points Z, v ~ N(mean, T T').

    With K_ZZ = L L' and a(x) = L^-1 k(Z, x) (Hensman et al. 2013, whitened):
        mean(x) = a(x)' mean,   var(x) = s - |a(x)|^2 + |T' a(x)|^2 + noise
    """

    inducing: Tensor
    prior_root: Tensor  # L
    mean: Tensor  # (M, outputs)
    root: Tensor  # T: (1, M, M), or (classes, M, M)

    @classmethod
    def conditioned(
        cls, prior: GP, inducing: Tensor, x: Tensor, y: Tensor, weight: Tensor
    ) -> SparseGP:
        """Find the best q(v) for Gaussian noise, in closed form over all rows:

        precision = I + sum_i w_i a_i a_i' / noise,   precision mean = sum_i w_i a_i y_i / noise
        """
        prior_root = inducing_root(prior.kernel(inducing, inducing), prior.scale)
        precision = torch.eye(len(inducing)).to(prior_root)
        shift = torch.zeros(len(inducing), y.shape[1]).to(prior_root)
        for part in torch.arange(len(x), device=x.device).split(CHUNK):
            across = prior.kernel(inducing, x[part])
            a = torch.linalg.solve_triangular(prior_root, across, upper=False)
            weighted = a * (weight[part] / prior.noise)
            precision += weighted @ a.T
            shift += weighted @ y[part]
        mean, root = moments(precision, shift)
        learnt = (prior.lengths, prior.scale, prior.noise)
        return cls(*learnt, inducing, prior_root, mean, root[None])

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        across = self.kernel(self.inducing, x)
        a = torch.linalg.solve_triangular(self.prior_root, across, upper=False)
        mean, var = latent(a, self.scale, self.mean, self.root)
        return mean, var + self.noise


def latent(a: Tensor, scale: Tensor, mean: Tensor, root: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean (rows, outputs) and variance (rows, 1 or outputs) of f at rows a = a(x)."""
    prior = (scale - a.square().sum(0)).clamp_min(0.0)
    return a.T @ mean, (prior + (root.mT @ a).square().sum(-2)).mT


def moments(precision: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean precision^-1 shift, and T with T T' = precision^-1."""
    lower = factor(precision)
    root = torch.linalg.solve_triangular(lower, torch.eye(len(lower)).to(lower), upper=False).mT
    return torch.cholesky_solve(shift, lower), root


def inducing_root(covariance: Tensor, scale: Tensor) -> Tensor:
    """Return L with L L' = K_ZZ, the diagonal raised a little: points may lie close together."""
    return factor(covariance + JITTER * scale * torch.eye(len(covariance)).to(covariance))


def factor(matrix: Tensor) -> Tensor:
    """Return the Cholesky factor; where rounding made the matrix indefinite, with more diagonal."""
    lower: Tensor
    for extra in (0.0, 1e-10, 1e-8, 1e-6):
        raised = matrix + extra * matrix.diagonal().mean() * torch.eye(len(matrix)).to(matrix)
        lower, failed = torch.linalg.cholesky_ex(raised if extra else matrix)
        if not failed:
            return lower
    lower = torch.linalg.cholesky(matrix)  # raises, with the place
    return lower
