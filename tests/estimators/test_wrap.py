"""`wrap`: distributions from a network that somebody trained with dropout for a point estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import rdeepsense as rds
from rdeepsense import InputError, metrics
from rdeepsense.calibration import Noise
from rdeepsense.datasets import simulate

TASK = simulate(2_400, seed=0)
Y = (TASK.y - 50) / 20
CLASSES = np.digitize(TASK.y, [40.0, 60.0])
TRAIN, HELD, TEST = slice(0, 1_400), slice(1_400, 1_700), slice(1_700, 2_400)


def train(network: nn.Module, y: Tensor, loss: Any, steps: int = 250) -> nn.Module:
    torch.manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.Linear):
            module.reset_parameters()
    optimiser = torch.optim.Adam(network.parameters(), 5e-3)
    x = torch.from_numpy(TASK.X[TRAIN]).float()
    for _ in range(steps):
        some = torch.randint(len(x), (128,))
        optimiser.zero_grad()
        loss(network(x[some]), y[some]).backward()
        optimiser.step()
    return network


def layers(outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(4, 32),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(32, 32),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(32, outputs),
    )


@pytest.fixture(scope="module")
def regression() -> nn.Module:
    y = torch.from_numpy(Y[TRAIN]).float()[:, None]
    return train(layers(1), y, functional.mse_loss)


@pytest.fixture(scope="module")
def classification() -> nn.Module:
    return train(layers(3), torch.from_numpy(CLASSES[TRAIN]), functional.cross_entropy)


@pytest.mark.parametrize("method", ["delta", "moments"])
def test_regression(regression: nn.Module, method: str) -> None:
    regression.train()
    before = {name: value.clone() for name, value in regression.state_dict().items()}
    model = rds.wrap(regression, TASK.X[HELD], Y[HELD], method=method)
    assert regression.training
    assert all(torch.equal(value, before[name]) for name, value in regression.state_dict().items())
    dist = model.predict_dist(TASK.X[TEST])
    with torch.no_grad():
        own = regression.eval()(torch.from_numpy(TASK.X[TEST]).float())[:, 0]
    np.testing.assert_allclose(model.predict(TASK.X[TEST]), own, rtol=1e-5, atol=1e-6)
    residual = np.std(Y[HELD] - model.predict(TASK.X[HELD]))
    flat = rds.Gaussian(dist.mean, residual)
    assert metrics.nll(dist, Y[TEST]) < metrics.nll(flat, Y[TEST]) + 0.02
    assert metrics.deviation_area(dist, Y[TEST]) < 0.06
    low, high = model.predict_interval(TASK.X[TEST], 0.9)
    assert 0.84 < np.mean((low < Y[TEST]) & (Y[TEST] < high)) < 0.96
    mean, std = model.predict(TASK.X[TEST], return_std=True)
    part = model.epistemic_std(TASK.X[TEST])
    np.testing.assert_allclose(std**2, part**2 + model.noise, rtol=1e-9)
    assert mean.shape == std.shape == part.shape == (700,)


def test_reaches_monte_carlo_dropout(regression: nn.Module) -> None:
    """100 passes of the same network, with noise tuned on the same rows."""
    model = rds.wrap(regression, TASK.X[HELD], Y[HELD])
    net = model.network

    def sampled(X: Any) -> rds.Gaussian:
        with torch.no_grad(), net.sampling():
            x = torch.from_numpy(X).float()
            draws = torch.stack([net(x).mean[:, 0] for _ in range(100)]).double().numpy()
        return rds.Gaussian(draws.mean(0), draws.std(0))

    torch.manual_seed(0)
    noise = Noise.fit(sampled(TASK.X[HELD]), Y[HELD])
    rival = metrics.nll(noise.apply(sampled(TASK.X[TEST])), Y[TEST])
    assert metrics.nll(model.predict_dist(TASK.X[TEST]), Y[TEST]) < rival + 0.05


def test_classification(classification: nn.Module) -> None:
    model = rds.wrap(classification, TASK.X[HELD], CLASSES[HELD])
    dist = model.predict_dist(TASK.X[TEST])
    with torch.no_grad():
        logits = classification.eval()(torch.from_numpy(TASK.X[TEST]).float())
    own = rds.Categorical(torch.softmax(logits.double(), -1).numpy())
    assert metrics.nll(dist, CLASSES[TEST]) < metrics.nll(own, CLASSES[TEST]) + 0.02
    assert np.mean(model.predict(TASK.X[TEST]) == own.mode) > 0.97
    np.testing.assert_allclose(model.predict_proba(TASK.X[TEST]).sum(1), 1)
    assert model.epistemic_std(TASK.X[TEST]).shape == (700, 3)
    near, far = (np.median(model.epistemic_std(k * TASK.X[TEST])) for k in (1, 5))
    assert far > 3 * near
    assert model.mutual_information(TASK.X[TEST]).shape == (700,)


class Squeezed(nn.Module):
    """Returns (rows,), as many networks of one output do."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.network(x).squeeze(-1)
        return out


def test_shapes_follow_y(regression: nn.Module) -> None:
    flat = rds.wrap(Squeezed(regression), TASK.X[HELD], Y[HELD])
    columns = rds.wrap(regression, torch.from_numpy(TASK.X[HELD]), Y[HELD, None])
    assert flat.predict(TASK.X[TEST]).shape == (700,)
    assert columns.predict(TASK.X[TEST]).shape == (700, 1)
    np.testing.assert_allclose(
        columns.predict_dist(TASK.X[TEST]).std[:, 0], flat.predict_dist(TASK.X[TEST]).std
    )


def test_whole_numbers_are_a_target_like_any_other_where_there_is_one_output(
    regression: nn.Module,
) -> None:
    model = rds.wrap(regression, TASK.X[HELD], np.rint(Y[HELD]).astype(int))
    assert isinstance(model.predict_dist(TASK.X[TEST]), rds.Gaussian)


@pytest.mark.parametrize(
    ("network", "y", "message"),
    [
        ("net", Y[HELD], "network is a str, not a torch.nn.Module"),
        (nn.Linear(4, 1), Y[HELD], "drops nothing"),
        (layers(1), Y[:5], "y_val has 5 rows, X_val 300"),
        (layers(2), Y[HELD], "y_val has shape .300,., the network 2 outputs"),
        (layers(3), CLASSES[HELD] + 1, "y_val has the class 3; accepted: 0 to 2"),
        (nn.Sequential(layers(3), nn.Softmax(-1)), CLASSES[HELD], "logits of its last Linear"),
        (
            nn.Sequential(nn.Linear(4, 4), nn.Unflatten(1, (2, 2))),
            Y[HELD],
            r"returned \(300, 2, 2\)",
        ),
        (layers(1), np.full(300, np.nan), "y_val must be an array of finite numbers"),
    ],
)
def test_refusals(network: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rds.wrap(network, TASK.X[HELD], y)


def test_unknown_method(regression: nn.Module) -> None:
    with pytest.raises(InputError, match="method = 'guess' is unknown; accepted: delta, moments"):
        rds.wrap(regression, TASK.X[HELD], Y[HELD], method="guess")


def test_a_reject_option_may_name_the_method_and_no_other(
    regression: nn.Module, classification: nn.Module
) -> None:
    for network, y, own, other in (
        (regression, Y, "delta", "laplace"),
        (classification, CLASSES, "laplace", "delta"),
    ):
        model = rds.wrap(network, TASK.X[HELD], y[HELD])
        plain, named, wrong = (
            rds.RejectOption(target_coverage=0.8, score="epistemic", method=method)
            for method in (None, own, other)
        )
        plain.fit(model, TASK.X[HELD], y[HELD])
        named.fit(model, TASK.X[HELD], y[HELD])
        assert named.threshold_ == plain.threshold_
        message = f"method = '{other}' is not how this network was wrapped; accepted: \"{own}\""
        with pytest.raises(InputError, match=message):
            wrong.fit(model, TASK.X[HELD], y[HELD])
        with pytest.raises(InputError, match=message):
            model.epistemic_std(TASK.X[TEST], method=other)
