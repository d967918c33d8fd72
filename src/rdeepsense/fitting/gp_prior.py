"""The kernel and noise of gpytorch that a Gaussian process learns, and its schedule.

Everything is in float64: the matrices are close to singular wherever the data is nearly noise-free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from rdeepsense._progress import Progress
from rdeepsense.errors import require
from rdeepsense.fitting.gp_models import GP

NOISE_FLOOR = 1e-6  # of a standardised target's variance


@dataclass(frozen=True)
class GPSchedule:
    """The length of learning, and its seed."""

    steps: int
    batch_size: int
    learning_rate: float
    inducing: int
    seed: int
    progress: Progress


class Prior:
    """The kernel and noise of gpytorch; each parameter is the logarithm of what it stands for."""

    def __init__(self, features: int, scale: float, device: torch.device) -> None:
        gpytorch = require("gpytorch", "gp")
        log = {"transform": torch.exp, "inv_transform": torch.log}
        positive = gpytorch.constraints.Positive
        self.kernel = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(
                ard_num_dims=features, lengthscale_constraint=positive(**log)
            ),
            outputscale_constraint=positive(**log),
        ).to(device, torch.float64)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=gpytorch.constraints.GreaterThan(NOISE_FLOOR, **log)
        ).to(device, torch.float64)
        # Two standardised rows of F inputs are about sqrt(2 F) apart.
        self.kernel.base_kernel.lengthscale = math.sqrt(features)
        self.kernel.outputscale = scale
        self.likelihood.noise = 0.1

    def parameters(self) -> list[torch.nn.Parameter]:
        return [*self.kernel.parameters(), *self.likelihood.parameters()]

    def covariance(self, x: Tensor, z: Tensor) -> Tensor:
        dense: Tensor = self.kernel(x, z).to_dense()
        return dense

    @property
    def noise(self) -> Tensor:
        noise: Tensor = self.likelihood.noise[0]
        return noise

    @property
    def scale(self) -> Tensor:
        scale: Tensor = self.kernel.outputscale
        return scale

    def plain(self, noisy: bool = True) -> GP:
        """Return the values alone, which predict without gpytorch."""
        noise = self.noise if noisy else torch.zeros_like(self.noise)
        values = (self.kernel.base_kernel.lengthscale[0], self.scale, noise)
        return GP(*(value.detach().clone() for value in values))
