"""Learning the kernel, the noise and the inducing points of a Gaussian process, with gpytorch.

Everything is in float64: the matrices are close to singular wherever the data is nearly noise-free.
The record's `loss` is per row and output: the negative log marginal likelihood of the exact method,
the mean over the last batches of what the variational ones minimise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from rdeepsense.errors import require
from rdeepsense.fitting.gp_models import (
    GP,
    ExactGP,
    SparseGP,
    factor,
    inducing_root,
    latent,
    moments,
)
from rdeepsense.progress import Progress

NOISE_FLOOR = 1e-6  # of a standardised target's variance
LOG_BOUND = math.log(1e4)  # lengths, scale and noise stay within a factor of this
WINDOW = 10  # batches over which the natural gradient averages
CANDIDATES = 20_000  # rows among which inducing points are chosen
DRAWS = 8  # of the latent functions per training step of a classifier


@dataclass(frozen=True)
class GPSchedule:
    """How long to learn, and from which seed."""

    steps: int
    batch_size: int
    learning_rate: float
    inducing: int
    seed: int
    progress: Progress


class Prior:
    """gpytorch's kernel and noise; each parameter is the logarithm of what it stands for."""

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
        """The values alone, which predict without gpytorch."""
        noise = self.noise if noisy else torch.zeros_like(self.noise)
        values = (self.kernel.base_kernel.lengthscale[0], self.scale, noise)
        return GP(*(value.detach().clone() for value in values))


def learn_exact(
    x: Tensor, y: Tensor, weight: Tensor, schedule: GPSchedule
) -> tuple[ExactGP, dict[str, Any]]:
    """The hyper-parameters of greatest marginal likelihood, by L-BFGS.

    With C = K + noise diag(1 / w) and D outputs that share it:

        -log p(y) = D/2 log|C| + 1/2 tr(y' C^-1 y) + D/2 (sum w - n) log noise + constant

    The last term is what w observations say more than one of variance noise / w. The gradient in
    C is known, D/2 C^-1 - 1/2 alpha alpha', which spares the way back through the factorisation.
    """
    prior, outputs = Prior(x.shape[1], 1.0, x.device), y.shape[1]
    surplus = outputs / 2 * float((weight - 1).sum())
    constant = outputs / 2 * float((weight * math.log(2 * math.pi) + weight.log()).sum())
    parameters = prior.parameters()

    def loss(values: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        torch.nn.utils.vector_to_parameters(torch.from_numpy(values).to(x), parameters)
        for parameter in parameters:
            parameter.grad = None
        C = prior.covariance(x, x) + torch.diag(prior.noise / weight)
        with torch.no_grad():
            root = factor(C)
            alpha = torch.cholesky_solve(y, root)
            slope = (outputs * torch.cholesky_inverse(root) - alpha @ alpha.T) / 2
            value = outputs * root.diagonal().log().sum() + (y * alpha).sum() / 2
        C.backward(slope)
        rest = surplus * prior.noise.log()
        rest.backward()
        found = torch.cat([p.grad.reshape(-1) for p in parameters if p.grad is not None])
        total = float(value + rest.detach()) + constant
        return total / y.numel(), found.cpu().numpy() / y.numel()

    def report(intermediate_result: Any) -> None:
        done[0] += 1
        schedule.progress.update(min(done[0], schedule.steps), f"NLL {intermediate_result.fun:.3f}")

    done = [0]
    start = torch.nn.utils.parameters_to_vector(parameters).detach().cpu().numpy()
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-LOG_BOUND, LOG_BOUND)] * (len(start) - 1) + [(math.log(NOISE_FLOOR), LOG_BOUND)],
        callback=report,
        options={"maxiter": schedule.steps, "ftol": 1e-7, "gtol": 1e-5},
    )
    torch.nn.utils.vector_to_parameters(torch.from_numpy(found.x).to(x), parameters)
    with torch.no_grad():
        model = ExactGP.conditioned(prior.plain(), x, y, weight)
    return model, {"steps": int(found.nit), "loss": float(found.fun)}


def learn_sparse(
    x: Tensor, y: Tensor, weight: Tensor, schedule: GPSchedule
) -> tuple[SparseGP, dict[str, Any]]:
    """Stochastic variational regression (Hensman et al. 2013); the best q(v) at the end.

    Each batch of B of the n rows moves q(v) by a natural gradient, which for Gaussian noise is an
    average of the batches' own closed forms, and the rest by Adam on

        n/B sum_i w_i E_q log N(y_i | f(x_i), noise) - KL(q(v) | N(0, I))

    All outputs share the covariance of q(v): the best one does not depend on y.
    """
    prior, outputs = Prior(x.shape[1], 1.0, x.device), y.shape[1]
    times = len(x) / min(schedule.batch_size, len(x))
    rate = 1 / min(WINDOW, times)
    statistics: list[Tensor] = []

    def loss(a: Tensor, batch: Tensor) -> Tensor:
        w, target, noise = weight[batch], y[batch], prior.noise
        with torch.no_grad():
            own = len(x) / len(batch) / noise
            precision = torch.eye(len(a)).to(a) + own * (a * w) @ a.T
            shift = own * (a * w) @ target
            if statistics:
                statistics[0].lerp_(precision, rate)
                statistics[1].lerp_(shift, rate)
            else:
                statistics.extend((precision, shift))
            mean, root = moments(statistics[0], statistics[1])
        f, var = latent(a, prior.scale, mean, root[None])
        error = (target - f).square().sum(1) + outputs * var[:, 0]
        # KL depends on q(v) alone and has no gradient here.
        each = outputs / 2 * torch.log(2 * math.pi * noise) + error / (2 * noise)
        return (w * each).mean() / outputs

    inducing, last = _descend(x, prior, [], schedule, loss)
    with torch.no_grad():
        model = SparseGP.conditioned(prior.plain(), inducing, x, y, weight)
    return model, {"steps": schedule.steps, "loss": last}


def learn_classes(
    x: Tensor, y: Tensor, weight: Tensor, classes: int, schedule: GPSchedule
) -> tuple[SparseGP, dict[str, Any]]:
    """One latent function per class and the softmax of them, which has no closed form.

    q(v) of each class is a full Gaussian, learnt together with the rest by Adam on

        n/B sum_i w_i E_q log softmax(f(x_i))[y_i] - sum_c KL(q(v_c) | N(0, I))

    the expectation by a few draws of the latent values.
    """
    # Logits of a standard deviation of 2: from probabilities of one half to those of 0.98.
    prior = Prior(x.shape[1], 4.0, x.device)
    size = min(schedule.inducing, len(x))
    mean = torch.zeros(size, classes).to(x).requires_grad_()
    lower = torch.zeros(classes, size, size).to(x).requires_grad_()
    log_diagonal = torch.zeros(classes, size).to(x).requires_grad_()

    def root() -> Tensor:
        return lower.tril(-1) + torch.diag_embed(log_diagonal.exp())

    def loss(a: Tensor, batch: Tensor) -> Tensor:
        T = root()
        f, var = latent(a, prior.scale, mean, T)
        drawn = f + var.sqrt() * torch.randn(DRAWS, *f.shape, device=f.device, dtype=f.dtype)
        log_prob = drawn.log_softmax(-1).mean(0).gather(1, y[batch, None])[:, 0]
        kl = (T.square().sum() + mean.square().sum() - mean.numel()) / 2 - log_diagonal.sum()
        return kl / len(x) - (weight[batch] * log_prob).mean()

    inducing, last = _descend(x, prior, [mean, lower, log_diagonal], schedule, loss)
    with torch.no_grad():
        plain = prior.plain(noisy=False)
        prior_root = inducing_root(plain.kernel(inducing, inducing), plain.scale)
        parts = (plain.lengths, plain.scale, plain.noise, inducing, prior_root)
        model = SparseGP(*parts, mean.detach().clone(), root())
    return model, {"steps": schedule.steps, "loss": last}


def _descend(
    x: Tensor,
    prior: Prior,
    others: list[Tensor],
    schedule: GPSchedule,
    loss: Callable[[Tensor, Tensor], Tensor],
) -> tuple[Tensor, float]:
    """Adam with a cosine on kernel, noise, inducing points and `others`; batches cover all rows.

    `loss` takes a(x) = L^-1 k(Z, x) of a batch and its row numbers. Returns Z and the mean loss of
    the last tenth of the steps.
    """
    inducing = _spread(x, schedule).requires_grad_()
    optimiser = torch.optim.Adam(
        [*prior.parameters(), inducing, *others], lr=schedule.learning_rate
    )
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, schedule.steps)
    waiting: list[Tensor] = []
    losses = []
    for step in range(1, schedule.steps + 1):
        if not waiting:
            waiting = list(torch.randperm(len(x)).to(x.device).split(schedule.batch_size))
            if len(waiting) > 1 and len(waiting[-1]) < schedule.batch_size:
                waiting.pop()  # a small rest would weigh its rows more
        batch = waiting.pop()
        root = inducing_root(prior.covariance(inducing, inducing), prior.scale)
        across = prior.covariance(inducing, x[batch])
        value = loss(torch.linalg.solve_triangular(root, across, upper=False), batch)
        optimiser.zero_grad(set_to_none=True)
        value.backward()
        optimiser.step()
        decay.step()
        losses.append(float(value.detach()))
        schedule.progress.update(step, f"loss {losses[-1]:.3f}")
    return inducing.detach(), float(np.mean(losses[-max(1, len(losses) // 10) :]))


def _spread(x: Tensor, schedule: GPSchedule) -> Tensor:
    """Rows that lie apart (the seeding of k-means++), to begin with as inducing points."""
    rows = x[torch.randperm(len(x))[:CANDIDATES].to(x.device)].cpu().numpy()
    if len(rows) <= schedule.inducing:
        return torch.from_numpy(rows).to(x)
    chosen, _ = kmeans_plusplus(rows, schedule.inducing, random_state=schedule.seed)
    return torch.from_numpy(chosen).to(x)
