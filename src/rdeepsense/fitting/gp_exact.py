"""Learning the hyper-parameters of an exact Gaussian process, with gpytorch.

The record's `loss` is the negative log marginal likelihood per row and output.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from rdeepsense.arrays import Floats
from rdeepsense.fitting.gp_models import ExactGP, factor
from rdeepsense.fitting.gp_prior import NOISE_FLOOR, GPSchedule, Prior

LOG_BOUND = math.log(1e4)  # lengths, scale and noise stay within a factor of this


def learn_exact(
    x: Tensor, y: Tensor, weight: Tensor, schedule: GPSchedule
) -> tuple[ExactGP, dict[str, Any]]:
    """Find the hyper-parameters of greatest marginal likelihood, by L-BFGS.

    With C = K + noise diag(1 / w) and D outputs that share it:

        -log p(y) = D/2 log|C| + 1/2 tr(y' C^-1 y) + D/2 (sum w - n) log noise + constant

    The last term is what w observations add to one of variance noise / w. The gradient in
    C is known, D/2 C^-1 - 1/2 alpha alpha', which saves a backward pass through the factorisation.
    """
    prior, outputs = Prior(x.shape[1], 1.0, x.device), y.shape[1]
    surplus = outputs / 2 * float((weight - 1).sum())
    constant = outputs / 2 * float((weight * math.log(2 * math.pi) + weight.log()).sum())
    parameters = prior.parameters()

    def loss(values: Floats) -> tuple[float, Floats]:
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

    def report(intermediate_result: OptimizeResult) -> None:
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
