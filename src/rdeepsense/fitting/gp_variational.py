"""Learning kernel, noise and inducing points of a Gaussian process by variational inference.

The record's `loss` is the mean over the last batches of what is minimised, per row and output.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from rdeepsense import _torch as randomness
from rdeepsense.fitting.gp_models import SparseGP, inducing_root, latent, moments
from rdeepsense.fitting.gp_prior import GPSchedule, Prior

WINDOW = 10  # batches over which the natural gradient averages
CANDIDATES = 20_000  # rows among which inducing points are chosen
DRAWS = 8  # of the latent functions per training step of a classifier


def learn_sparse(
    x: Tensor, y: Tensor, weight: Tensor, schedule: GPSchedule
) -> tuple[SparseGP, dict[str, Any]]:
    """Learn a regression by stochastic variational inference (Hensman et al. 2013).

    Each batch of B of the n rows moves q(v) by a natural gradient, which for Gaussian noise is an
    average of the batches' own closed forms, and the rest by Adam on

        n/B sum_i w_i E_q log N(y_i | f(x_i), noise) - KL(q(v) | N(0, I))

    All outputs share the covariance of q(v): the best one does not depend on y. At the end q(v)
    is the best one for all rows.
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
    """Learn one latent function per class under a softmax, which has no closed form.

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
        drawn = f + var.sqrt() * _normal(f)
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
    """Run Adam with a cosine on kernel, noise, inducing points and `others`, over all rows.

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
            waiting = list(_shuffled(x).split(schedule.batch_size))
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


def _normal(f: Tensor) -> Tensor:
    """Draw standard normal values of the shape of f, `DRAWS` times."""
    return f.new_empty(DRAWS, *f.shape).normal_(generator=randomness.current(f.device))


def _shuffled(x: Tensor) -> Tensor:
    """Draw an order of the rows."""
    return torch.randperm(len(x), generator=randomness.current(x.device), device=x.device)


def _spread(x: Tensor, schedule: GPSchedule) -> Tensor:
    """Choose rows that lie apart (the seeding of k-means++) as first inducing points."""
    rows = x[_shuffled(x)[:CANDIDATES]].cpu().numpy()
    if len(rows) <= schedule.inducing:
        return torch.from_numpy(rows).to(x)
    chosen, _ = kmeans_plusplus(rows, schedule.inducing, random_state=schedule.seed)
    return torch.from_numpy(chosen).to(x)
