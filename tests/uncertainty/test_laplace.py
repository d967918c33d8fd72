"""Last-layer Laplace against Bayesian linear regression, in batches, and its choice of prior."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rdeepsense import InputError, convert, epistemic_variance
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.heads.point import PointHead
from rdeepsense.networks import dense
from rdeepsense.uncertainty import Laplace, features


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def network(outputs: int = 1, likelihood: str = "gaussian") -> StochasticNetwork:
    torch.manual_seed(0)
    net = convert(dense(3, (6,), outputs), likelihood, drop_prob=0.1).double().eval()
    layer = net.body.get_submodule(net.output)
    assert isinstance(layer, nn.Linear)
    layer.weight.data += 0.3 * rows(*layer.weight.shape)  # variances that differ from row to row
    return net


def once(x: Tensor) -> list[tuple[Tensor, Tensor]]:
    return [(x, torch.ones(len(x)).double())]


def posterior(
    phi: NDArray[np.float64], precision: NDArray[np.float64], prior: float
) -> NDArray[np.float64]:
    """The covariance of the weights in Bayesian linear regression, row by row."""
    matrix = prior * np.eye(phi.shape[1])
    for row, weight in zip(phi, precision, strict=True):
        matrix += weight * np.outer(row, row)
    inverse: NDArray[np.float64] = np.linalg.inv(matrix)
    return inverse


@pytest.mark.parametrize("likelihood", ["gaussian", "student"])
def test_is_bayesian_linear_regression_on_the_last_layer(likelihood: str) -> None:
    net, x, new = network(likelihood=likelihood), rows(200, 3), 2 * rows(30, 3)
    fitted = Laplace.fit(net, once(x))
    with torch.no_grad():
        params, phi = features(net, x)
        _, phi_new = features(net, new)
    hidden = torch.relu(net.body[0](new)).detach()  # type: ignore[index]
    ones = torch.ones(30, 1).double()
    torch.testing.assert_close(phi_new, torch.cat([hidden, new, ones], 1))
    if likelihood == "gaussian":
        precision = 1 / params.var  # type: ignore[attr-defined]
    else:
        df = params.df  # type: ignore[attr-defined]
        precision = (df + 1) / (df + 3) / params.scale**2  # type: ignore[attr-defined]
    cov = posterior(phi.numpy(), precision[:, 0].numpy(), fitted.prior)
    exact = np.einsum("ni,ij,nj->n", phi_new, cov, phi_new)
    found = epistemic_variance(net, new, "laplace", fitted=fitted)[:, 0]
    np.testing.assert_allclose(found, exact, rtol=2e-5)  # the root is kept in float32


def test_outputs_of_proportional_noise_have_each_their_own_posterior() -> None:
    net, x = network(2), rows(100, 3)
    layer = net.body.get_submodule(net.output)
    layer.weight.data[2:] = 0  # type: ignore[union-attr, operator]
    layer.bias.data[2:] = torch.tensor([-1.0, 2.0])  # type: ignore[union-attr, operator]
    fitted = Laplace.fit(net, once(x))
    with torch.no_grad():
        params, phi = features(net, x)
    found = epistemic_variance(net, x, "laplace", fitted=fitted)
    for k, var in enumerate(params.var[0].tolist()):  # type: ignore[attr-defined]
        prior = fitted.prior / fitted.ratio[k]
        cov = posterior(phi.numpy(), np.full(100, 1 / var), prior)
        np.testing.assert_allclose(found[:, k], np.einsum("ni,ij,nj->n", phi, cov, phi), rtol=2e-5)


def test_batches_are_one_fit() -> None:
    net, x = network(2), rows(101, 3)
    whole = Laplace.fit(net, once(x))
    parts = Laplace.fit(net, ((p, torch.ones(len(p)).double()) for p in x.split(7)))
    np.testing.assert_allclose(parts.root, whole.root, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(parts.ratio, whole.ratio, rtol=1e-12)
    assert parts.prior == pytest.approx(whole.prior, rel=1e-5)


def test_a_weight_is_a_number_of_rows() -> None:
    net, x = network(), rows(20, 3)
    twice = Laplace.fit(net, [(torch.cat([x, x]), torch.ones(40).double())])
    heavy = Laplace.fit(net, [(x, torch.full((20,), 2.0).double())])
    np.testing.assert_allclose(heavy.root, twice.root, rtol=1e-4, atol=1e-7)


def test_more_rows_leave_less_open_and_strange_inputs_more() -> None:
    net, x = network(), rows(400, 3)
    few, many = Laplace.fit(net, once(x[:40])), Laplace.fit(net, once(x))
    variance = {
        n: epistemic_variance(net, x, "laplace", fitted=f) for n, f in enumerate((few, many))
    }
    assert (variance[1].mean() < 0.3 * variance[0].mean()).item()
    far = epistemic_variance(net, 5 * x, "laplace", fitted=many)
    assert far.median() > 5 * variance[1].median()


def test_the_prior_has_the_greatest_evidence() -> None:
    """log p = size/2 log prior - 1/2 log det H - prior/2 |w|^2, tried on a grid."""
    net, x = network(), rows(60, 3)
    fitted = Laplace.fit(net, once(x))
    layer = net.body.get_submodule(net.output)
    with torch.no_grad():
        params, phi = features(net, x)
    w = torch.cat([layer.weight[0], torch.zeros(3), layer.bias[:1]]).detach()  # type: ignore[union-attr, index]
    matrix = (phi / params.var).T @ phi  # type: ignore[attr-defined]

    def evidence(prior: float) -> float:
        size = len(matrix)
        logdet = torch.logdet(matrix + prior * torch.eye(size).double())
        return float(0.5 * (size * np.log(prior) - logdet - prior * w.square().sum()))

    grid = fitted.prior * np.array([0.3, 0.8, 1.25, 3.0])
    assert all(evidence(fitted.prior) > evidence(prior) for prior in grid)


def test_classes_use_the_curvature_of_the_softmax() -> None:
    net, x = network(3, "categorical"), rows(80, 3)
    fitted = Laplace.fit(net, once(x))
    with torch.no_grad():
        params, phi = features(net, x)
    probs = torch.softmax(params.logits, -1)  # type: ignore[attr-defined]
    curvature = probs * (1 - probs)
    cov = posterior(phi.numpy(), curvature.mean(1).numpy(), fitted.prior)
    shared = np.einsum("ni,ij,nj->n", phi, cov, phi)
    ratio = (curvature.mean() / curvature.mean(0)).numpy()
    found = epistemic_variance(net, x, "laplace", fitted=fitted)
    np.testing.assert_allclose(found, shared[:, None] * ratio, rtol=2e-5)


def test_refusals() -> None:
    net, x = network(), rows(10, 3)
    with pytest.raises(InputError, match="no rows"):
        Laplace.fit(net, [])
    other = convert(dense(3, (9,), 1), drop_prob=0.1).double().eval()
    with pytest.raises(
        InputError, match="fitted on 9 numbers of the last layer, the network has 12"
    ):
        epistemic_variance(other, x, "laplace", fitted=Laplace.fit(net, once(x)))
    point = StochasticNetwork(nn.Sequential(nn.Linear(3, 1)).double(), PointHead(1), "0")
    with pytest.raises(InputError, match="point estimate has no Fisher information"):
        Laplace.fit(point, once(x))
