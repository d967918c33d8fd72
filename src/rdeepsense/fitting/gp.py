"""Gaussian processes: priors, exact and variational training, prediction (section 4.3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from rdeepsense import _torch
from rdeepsense._progress import Progress
from rdeepsense.arrays import Floats
from rdeepsense.data.scaling import Scaler
from rdeepsense.distributions import Categorical, Gaussian, concatenate
from rdeepsense.errors import InputError, require
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.container import Header
from rdeepsense.modelfile.layout import Context, Layout, Numbers, length
from rdeepsense.modelfile.tensors import Tensors

# --------------------------------------------------------------------------------------------------
# Fitted Gaussian processes: tensors and prediction formulas
#
# Several outputs share the kernel and the factorisation: given both, an output costs one more
# column of weights, and its variance (on the standardised scale) is that of all the others.
#
#     k(x, z) = s exp(-1/2 sum_j (x_j - z_j)^2 / l_j^2)
#
# The squared-exponential kernel with one length per input (ARD) is the one that the paper's GP and
# the published UCI tables take; the lengths say which inputs matter.
# --------------------------------------------------------------------------------------------------

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
        return cls(prior.lengths, prior.scale, prior.noise, x=x, root=root, alpha=alpha)

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


# --------------------------------------------------------------------------------------------------
# Kernel, noise and training schedule of a Gaussian process (gpytorch)
#
# Everything is in float64: the matrices are close to singular wherever the data is nearly
# noise-free.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Hyperparameters of an exact Gaussian process, with gpytorch
#
# The record's `loss` is the negative log marginal likelihood per row and output.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Variational training of kernel, noise and inducing points
#
# The record's `loss` is the mean over the last batches of what is minimised, per row and output.
# --------------------------------------------------------------------------------------------------

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
    return f.new_empty(DRAWS, *f.shape).normal_(generator=_torch.current(f.device))


def _shuffled(x: Tensor) -> Tensor:
    """Draw an order of the rows."""
    return torch.randperm(len(x), generator=_torch.current(x.device), device=x.device)


def _spread(x: Tensor, schedule: GPSchedule) -> Tensor:
    """Choose rows that lie apart (the seeding of k-means++) as first inducing points."""
    rows = x[_shuffled(x)[:CANDIDATES]].cpu().numpy()
    if len(rows) <= schedule.inducing:
        return torch.from_numpy(rows).to(x)
    chosen, _ = kmeans_plusplus(rows, schedule.inducing, random_state=schedule.seed)
    return torch.from_numpy(chosen).to(x)


# --------------------------------------------------------------------------------------------------
# A trained Gaussian process and its predictions
# --------------------------------------------------------------------------------------------------

PREDICT_CHUNK = 1_024  # rows predicted at a time: with 3,000 training rows, 25 MB of covariances
LATENT_DRAWS = 64
MODELS: dict[str, type[GP]] = {"exact": ExactGP, "variational": SparseGP}


@dataclass(frozen=True)
class Process:
    """A Gaussian process; of classes the softmax of one latent function for each.

    The probabilities of classes are the mean of the softmax over fixed draws of the latent values,
    the same for every row, so that predictions repeat.
    """

    gp: GP
    method: str  # "exact" or "variational"
    classes: int | None  # None for a regression

    def predict(
        self, X: NDArray[Any], scaler: Scaler, device: torch.device, chunk: int = PREDICT_CHUNK
    ) -> Gaussian | Categorical:
        """Predict on the scale that the process was trained on."""
        model, parts = self.gp.to(device), []
        with torch.no_grad():
            for start in range(0, len(X), chunk):
                x = scaler.transform(X[start : start + chunk], torch.float64)
                mean, var = (t.cpu() for t in model.predict(x.to(device)))
                parts.append(self._distribution(mean, var))
        joined: Gaussian | Categorical = concatenate(parts)
        return joined

    def _distribution(self, mean: torch.Tensor, var: torch.Tensor) -> Gaussian | Categorical:
        if self.classes is None:
            return Gaussian(mean.numpy(), var.sqrt().expand_as(mean).numpy())
        half = np.random.default_rng(0).standard_normal((LATENT_DRAWS // 2, 1, self.classes))
        draws = torch.from_numpy(np.concatenate([half, -half]))  # pairs have the right mean
        return Categorical((mean + var.sqrt() * draws).softmax(-1).mean(0).numpy())


# --------------------------------------------------------------------------------------------------
# File format of a Gaussian process: the header field method and the tensors gp.*
# --------------------------------------------------------------------------------------------------

DOUBLE = "f8"


def process_layout(context: Context) -> Layout:
    """Name the tensors of a process."""
    (features,), outputs, shapes = context.network_shape[:1], context.outputs, context.shapes
    yield "gp.lengths", Numbers((features,), 1e-30, 1e30, DOUBLE)
    yield "gp.scale", Numbers((), 1e-30, 1e30, DOUBLE)
    yield "gp.noise", Numbers((), 0.0, 1e30, DOUBLE)
    if context.header["method"] == "exact":
        rows = length(shapes, "gp.x")
        yield "gp.x", Numbers((rows, features), -1e100, 1e100, DOUBLE)
        yield "gp.root", Numbers((rows * (rows + 1) // 2,), -1e30, 1e30, DOUBLE)
        yield "gp.alpha", Numbers((rows, outputs), -1e30, 1e30, DOUBLE)
        return
    points = length(shapes, "gp.inducing")
    roots = length(shapes, "gp.root")
    if roots not in (1, outputs):
        raise InputError(f"gp.root has {roots} matrices, not 1 or {outputs}")
    yield "gp.inducing", Numbers((points, features), -1e100, 1e100, DOUBLE)
    yield "gp.prior_root", Numbers((points, points), -1e30, 1e30, DOUBLE)
    yield "gp.mean", Numbers((points, outputs), -1e30, 1e30, DOUBLE)
    yield "gp.root", Numbers((roots, points, points), -1e30, 1e30, DOUBLE)


def write_process(process: Process, header: Header, tensors: Tensors) -> None:
    """Add a process to what its file will hold."""
    header["method"] = process.method
    arrays = {name: value.numpy() for name, value in process.gp.arrays().items()}
    tensors |= model_file.named("gp", arrays)


def read_process(tensors: Tensors, context: Context) -> Process:
    """Build the process that a file holds, and take its arrays out of `tensors`."""
    arrays, method = model_file.under("gp", tensors), context.header["method"]
    for name in arrays:
        del tensors[f"gp.{name}"]
    held = {name: torch.from_numpy(array) for name, array in arrays.items()}
    restored = MODELS[method].restored(held)
    # A tensor that is still a part of the file's bytes would keep all of them.
    parts = {name: value.clone() for name, value in vars(restored).items() if value is held[name]}
    classes = context.outputs if context.is_classes else None
    return Process(replace(restored, **parts), method, classes)
