"""Fitted estimators of windows whose shapes, weights and norms are drawn, not learnt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rdeepsense.estimators import RDeepSenseClassifier, RDeepSenseRegressor
from rdeepsense.networks import DeepSense

ROWS, FITTED = 40, 32


@dataclass(frozen=True)
class DrawnWindows:
    """An estimator, and windows in raw units that it was fitted on."""

    estimator: Any
    X: NDArray[np.float64]
    name: str


class OwnNetwork(nn.Module):
    """Convolutions of one or two axes, norms, pooling, a recurrent layer, Linear layers."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, int], outputs: int) -> None:
        super().__init__()
        length, channels = shape
        self.plane, self.how = bool(rng.random() < 0.4), int(rng.integers(4))
        width = int(rng.integers(2, 9))
        kernel, stride = int(rng.integers(1, 5)), int(rng.integers(1, 3))
        padding, groups = int(rng.integers(3)), int(rng.choice([1, channels]))
        first: nn.Module
        if self.plane:
            first = nn.Conv2d(1, width, (kernel, 2), (stride, 1), (padding, 1))
            norm: nn.Module = nn.BatchNorm2d(width)
            pool: nn.Module = nn.AvgPool2d((2, 1))
        else:
            width *= groups
            first = nn.Conv1d(channels, width, kernel, stride, padding, 1 + padding, groups)
            norm, pool = nn.BatchNorm1d(width), nn.MaxPool1d(2, 1 + padding)
        order = [nn.ReLU(), norm] if rng.random() < 0.3 else [norm, nn.ReLU()]
        self.look = nn.Sequential(first, *order, *([pool] if rng.random() < 0.6 else []))
        self.early = bool(rng.random() < 0.7)
        self.hidden, self.layers = int(rng.integers(1, 12)), int(rng.integers(1, 3))
        self.both = bool(rng.random() < 0.4)
        features = self._seen(torch.zeros(1, length, channels)).shape[-1]
        self.turn = (nn.GRU if rng.random() < 0.6 else nn.LSTM)(
            features, self.hidden, self.layers, batch_first=self.early, bidirectional=self.both
        )
        wide = self.hidden * (1 + self.both)
        self.middle, self.last = nn.Linear(wide, 7), nn.Linear(7, outputs)

    def _seen(self, x: Tensor) -> Tensor:
        """(rows, steps, features)."""
        if self.plane:
            return self.look(x.unsqueeze(1)).permute(0, 2, 1, 3).flatten(2)
        return self.look(x.transpose(1, 2)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        seen = self._seen(x)
        states, last = self.turn(seen if self.early else seen.transpose(0, 1))
        last = last[0] if isinstance(last, tuple) else last
        time = 1 if self.early else 0
        if self.how == 0:
            found = states.mean(time)
        elif self.how == 1:
            found = states[:, -1] if self.early else states[-1]
        elif self.how == 2 and not self.both:
            found = last[-1]
        else:
            parts = states.transpose(0, 1) if not self.early else states
            found = parts[:, 0] + torch.tanh(parts.mean(dim=1))
        return self.last(torch.sigmoid(self.middle(found)))


@cache
def draw_deepsense(seed: int) -> DrawnWindows:
    """Sensors, interval, filters, depth, states and pooling of any size."""
    rng = np.random.default_rng(seed)
    sensors = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 4)))
    interval, count = int(rng.integers(2, 13)), int(rng.integers(1, 6))
    spec = DeepSense(
        sensors,
        interval,
        filters=int(rng.integers(1, 12)),
        depth=int(rng.integers(1, 3)),
        hidden=int(rng.integers(1, 20)),
        layers=int(rng.integers(1, 4)),
        pool=("mean", "last")[int(rng.integers(2))],
    )
    return _fitted(seed, rng, spec, (count * interval, sum(sensors)), f"{spec} x {count}")


@cache
def draw_own(seed: int) -> DrawnWindows:
    """A network of a user's own."""
    rng = np.random.default_rng(1_000 + seed)
    shape = (int(rng.integers(8, 20)), int(rng.integers(1, 5)))
    outputs = 3 if seed % 3 == 2 else 1
    torch.manual_seed(seed)
    network = OwnNetwork(rng, shape, outputs)
    return _fitted(seed, rng, network, shape, f"{network} of {shape}")


def _fitted(
    seed: int, rng: np.random.Generator, network: Any, shape: tuple[int, int], name: str
) -> DrawnWindows:
    X = rng.normal(size=(ROWS, *shape)) * 10 ** rng.uniform(-3, 3, shape[1])
    X += 10 * rng.normal(size=shape[1]) * X.std((0, 1))
    arguments: dict[str, Any] = {"network": network, "epochs": 1, "random_state": seed}
    arguments |= {"verbose": False, "effort": "quick", "device": "cpu"}
    estimator: Any
    if seed % 3 == 2:
        estimator, y = RDeepSenseClassifier(**arguments), np.arange(ROWS) // 7 % 3
    else:
        likelihood = ("gaussian", "student")[seed % 3]
        estimator = RDeepSenseRegressor(likelihood=likelihood, **arguments)
        y = 5 + 3 * rng.normal(size=ROWS)
    # Validation rows are given, so that the fit is not one of few rows.
    estimator.fit(X[:FITTED], y[:FITTED], validation=(X[FITTED:], y[FITTED:]))
    # An export has a density of the inputs only where one is asked for.
    estimator.fitted_ = replace(estimator.fitted_, unlike=None)
    _randomise(estimator.network_, rng)
    return DrawnWindows(estimator, X, name)


def _randomise(network: nn.Module, rng: np.random.Generator) -> None:
    """Weights as torch draws them for a new network, and norms of rows that were never seen."""
    with torch.no_grad():
        for value in network.parameters():
            reach = value[0].numel() ** -0.5 if value.ndim > 1 else 0.5
            value.copy_(torch.from_numpy(reach * rng.uniform(-1, 1, tuple(value.shape))))
        for module in network.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                count = module.num_features
                module.running_mean.copy_(torch.from_numpy(rng.normal(size=count)))
                module.running_var.copy_(torch.from_numpy(rng.uniform(0.2, 2, count)))
                module.weight.copy_(torch.from_numpy(rng.uniform(0.5, 2, count)))
