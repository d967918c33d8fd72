"""Last-layer Laplace approximation: the posterior of the last layer and its predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from scipy import special
from scipy.optimize import minimize_scalar
from torch import Tensor, nn
from torch.nn import functional

from rdeepsense.arrays import Floats, Singles
from rdeepsense.distributions import Categorical
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.heads import Params

# --------------------------------------------------------------------------------------------------
# Last-layer Laplace approximation
#
# With the last hidden layer's numbers phi (the inputs, and a 1 for the bias, beside them), a
# Gaussian prior of precision `prior` on the weights and the curvature of the loss at the trained
# ones,
#
#     H = sum_n w_n phi_n phi_n^T + prior I,      Var[mu(x)] = phi(x)^T H^-1 phi(x)
#
# w_n is the Fisher information of row n about its mean or logits: 1 / var for a Gaussian, (df + 1)
# / ((df + 3) scale^2) for a Student-t, p (1 - p) for a class. For one Gaussian output this is
# Bayesian linear regression on phi, exactly. Several outputs share one matrix: w_n is their mean,
# and output k's variance is multiplied by mean(w) / mean(w_k) (a Kronecker factor, diagonal).
#
# The inputs are read through weights of 0, as if a connection had been trained and found useless: a
# hidden layer may map a row unlike all others to numbers like all others, and the inputs still
# tell.
#
# The prior is the one of greatest marginal likelihood (MacKay 1992).
# --------------------------------------------------------------------------------------------------

MOST_INPUTS = 1_024  # more, as in windows of raw samples, would make the matrix too large
LOG_PRIOR = (-12.0, 12.0)  # where the precision of the prior is sought
TINY = 1e-12  # of the greatest eigenvalue; a smaller prior would be lost in rounding


@dataclass(frozen=True)
class Laplace:
    """A fitted last layer: one matrix, `root` root^T = H^-1, and a number for each output."""

    root: Singles
    ratio: Floats
    prior: float

    @classmethod
    def fit(cls, network: StochasticNetwork, batches: Iterable[tuple[Tensor, Tensor]]) -> Laplace:
        """Pass once over the training rows, in batches of (x, weights of the rows)."""
        network = network.twin().eval()
        layer = _last_layer(network)
        outputs = network.head.outputs
        matrix = layer.weight.new_zeros((), dtype=torch.float64)
        shares = matrix.new_zeros(outputs)
        rows = 0.0
        with torch.no_grad(), network.drawing(0, layer.weight.device):
            for x, weight in batches:
                params, phi = features(network, x)
                information = params.information().double() * weight[:, None]
                phi = phi.double()
                matrix = matrix + (phi * information.mean(1, keepdim=True)).T @ phi
                shares += information.sum(0)
                rows += float(weight.sum())
        if not rows:
            raise InputError("the Laplace approximation was given no rows to fit")
        ratio = (shares.mean() / shares.clamp_min(TINY * rows)).cpu().numpy()
        weights = layer.weight[:outputs].detach().double()
        squares = weights.square().sum(1) + layer.bias[:outputs].detach().double().square()
        prior = _prior(torch.linalg.eigvalsh(matrix).cpu().numpy(), squares.cpu().numpy() / ratio)
        matrix.diagonal().add_(prior)
        lower = torch.linalg.cholesky(matrix)
        eye = torch.eye(len(matrix), dtype=torch.float64, device=matrix.device)
        root = torch.linalg.solve_triangular(lower, eye, upper=False).T
        return cls(root.cpu().numpy().astype(np.float32), ratio, prior)

    def variance(self, phi: Tensor) -> Tensor:
        """Return phi^T H^-1 phi (rows, outputs), for phi as `features` gives it."""
        root = torch.from_numpy(self.root).to(phi)
        ratio = torch.from_numpy(self.ratio).to(phi)
        return (phi @ root).square().sum(1, keepdim=True) * ratio


def by_laplace(network: StochasticNetwork, x: Tensor, fitted: Laplace) -> tuple[Params, Tensor]:
    """Return the single pass, and the variance (rows, outputs) of its mean or logits."""
    network = network.twin().eval()
    with torch.no_grad(), network.drawing(0, x.device):
        params, phi = features(network, x)
        if phi.shape[1] != len(fitted.root):
            raise InputError(
                f"the Laplace approximation was fitted on {len(fitted.root) - 1} numbers of the "
                f"last layer, the network has {phi.shape[1] - 1}"
            )
        return params, fitted.variance(phi)


def features(network: StochasticNetwork, x: Tensor) -> tuple[Params, Tensor]:
    """Return the network's parameters, and what its last layer reads, with a 1 for the bias."""
    with _inputs(_last_layer(network)) as seen:
        params: Params = network(x)
    phi = seen[-1]
    if phi.ndim != 2:
        raise InputError(
            f"the last layer reads a tensor of shape {tuple(phi.shape)}; the Laplace approximation "
            "needs (rows, features)"
        )
    inputs = x.flatten(1)
    if inputs.shape[1] <= MOST_INPUTS:
        phi = torch.cat([phi, inputs], 1)
    return params, functional.pad(phi, (0, 1), value=1.0)


def features_of(network: StochasticNetwork, inputs: int) -> int:
    """Return how many numbers `features` gives for rows of so many inputs."""
    return _last_layer(network).in_features + (inputs if inputs <= MOST_INPUTS else 0) + 1


def _last_layer(network: StochasticNetwork) -> nn.Linear:
    layer = network.body.get_submodule(network.output)
    assert isinstance(layer, nn.Linear)
    return layer


@contextmanager
def _inputs(layer: nn.Module) -> Iterator[list[Tensor]]:
    seen: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _module, args: seen.append(args[0]))
    try:
        yield seen
    finally:
        hook.remove()


def _prior(eigenvalues: Floats, squares: Floats) -> float:
    """Find the precision of greatest marginal likelihood.

    log p = outputs / 2 (size log prior - sum log(e + prior)) - prior / 2 sum squares,
    with e the eigenvalues and `squares` the squared norm of each output's weights.
    """
    spectrum = np.maximum(eigenvalues, 0.0)

    def loss(log_prior: float) -> float:
        prior = np.exp(log_prior)
        fit = np.sum(log_prior - np.log(spectrum + prior))
        return float(prior * squares.sum() - len(squares) * fit)

    best = float(np.exp(minimize_scalar(loss, bounds=LOG_PRIOR, method="bounded").x))
    return max(best, TINY * float(spectrum.max()))


# --------------------------------------------------------------------------------------------------
# Class probabilities of Gaussian logits, N(logits, variance)
# --------------------------------------------------------------------------------------------------

DRAWS = 256
CHUNK = 1_024
TINY_PROB = 1e-300


def probit(dist: Categorical, variance: Floats) -> Categorical:
    """Return the mean of softmax(l), l ~ N(logits, v), as softmax(logits / sqrt(1 + pi v / 8)).

    MacKay's approximation (1992), class by class, of logits with a mean of 0.
    """
    logits = _logits(dist) / np.sqrt(1 + np.pi / 8 * variance)
    return Categorical(special.softmax(logits, axis=-1), dist.classes)


def mutual_information(dist: Categorical, variance: Floats, temperature: float = 1.0) -> Floats:
    """Return H[E p] - E H[p] in nats, p = softmax(l / temperature), l ~ N(logits, variance).

    What the class would tell about the weights: 0 where all networks agree, however unsure. The
    expectations are means over 256 draws, the same for every row; the network itself runs once.
    """
    noise = np.random.default_rng(0).standard_normal((DRAWS, dist.n_classes))
    logits, std = _logits(dist), np.sqrt(variance)
    found = np.empty(len(dist))
    for start in range(0, len(dist), CHUNK):
        part = slice(start, start + CHUNK)
        drawn = logits[part, None] + std[part, None] * noise
        probs = special.softmax(drawn / temperature, axis=-1)
        found[part] = special.entr(probs.mean(1)).sum(-1) - special.entr(probs).sum(-1).mean(1)
    return np.maximum(found, 0.0)


def _logits(dist: Categorical) -> Floats:
    logits = np.log(np.maximum(dist.probs, TINY_PROB))
    centred: Floats = logits - logits.mean(-1, keepdims=True)
    return centred
