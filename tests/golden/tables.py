"""The small tables, files and networks of the golden cases; all of them follow from fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.float64]
FEATURES = ("x0", "x1", "x2", "x3")
LABELS = np.array(["rest", "walk", "run"])


def table(rows: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Four inputs of different units, and a target whose noise depends on the first."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-2, 2, (rows, 4))
    mean = 0.8 * z[:, 0] - 0.3 * z[:, 1] * z[:, 2] + 0.2 * z[:, 2]
    spread = 0.3 + 0.1 * np.abs(z[:, 0])
    y = 50 + 20 * (mean + spread * rng.standard_normal(rows))
    return rounded(z * [1.0, 10.0, 0.1, 3.0] + [0.0, 100.0, -1.0, 5.0]), rounded(y)


def rounded(values: Floats) -> Floats:
    """The same on every machine: the split follows from the bits of the rows."""
    return np.round(values, 6)


def labels(y: Floats) -> NDArray[Any]:
    """The target in three classes."""
    return LABELS[np.digitize(y, [40.0, 60.0])]


def windows(rows: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Windows (rows, 16, 3); the target is how strongly they swing."""
    rng = np.random.default_rng(seed)
    swing = rng.uniform(1, 3, rows)
    X = rng.normal(0, 0.5, (rows, 16, 3))
    X[..., 1] += swing[:, None] * np.sin(np.arange(16))
    return rounded(X * [1.0, 100.0, 0.01] + [5.0, -10.0, 0.0]), rounded(10 * swing)


def holed(X: Floats) -> NDArray[np.float32]:
    """A tenth of the values missing, one column constant, in float32."""
    X = np.where(np.random.default_rng(7).random(X.shape) < 0.1, np.nan, X)
    X[:, 3] = 4.0
    return X.astype(np.float32)


def columns(rows: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    """A table by the names of its columns."""
    X, y = table(rows, seed)
    return {**dict(zip(FEATURES, X.T, strict=True)), "y": y}


def written(folder: Path, named: dict[str, NDArray[Any]]) -> Path:
    """The columns in a new folder of three Parquet files, in row groups of 100."""
    folder.mkdir()
    edges = np.linspace(0, len(next(iter(named.values()))), 4).astype(int)
    for number, (a, b) in enumerate(pairwise(edges)):
        part = pa.table({name: values[a:b] for name, values in named.items()})
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=100)
    return folder


def drawn(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """A network with weights of this seed, whatever was drawn before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


class Recurrent(nn.Module):
    """A network that somebody wrote for windows."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.look = nn.Conv1d(3, 4, 4, stride=2)
        self.read = nn.GRU(4, 6, batch_first=True)
        self.last = nn.Linear(6, outputs)

    def forward(self, x: Tensor) -> Tensor:
        seen = torch.relu(self.look(x.transpose(1, 2))).transpose(1, 2)
        found: Tensor = self.last(self.read(seen)[0].mean(1))
        return found


class Layers(nn.Module):
    """The layers, activations and sums that `Recurrent` has none of."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.look = nn.Conv2d(1, 2, (3, 1))
        self.most = nn.MaxPool2d((2, 1))
        self.mean = nn.AvgPool2d((2, 1))
        self.read = nn.LSTM(6, 4, batch_first=True)
        self.next = nn.Linear(4, 4)
        self.last = nn.Linear(4, outputs)

    def forward(self, x: Tensor) -> Tensor:
        seen = torch.relu(self.look(x.unsqueeze(1)))
        pooled = self.mean(self.most(seen)).transpose(1, 2).flatten(2)
        gates = torch.sigmoid(self.read(pooled)[0])
        found: Tensor = self.last((gates + torch.tanh(self.next(gates))).mean(1))
        return found


def sequential() -> nn.Module:
    """A network of one's own that can be folded; two of its layers have no ReLU in between."""
    return nn.Sequential(
        nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 1)
    )


def with_dropout(outputs: int) -> nn.Sequential:
    """A network as it is trained for a point estimate."""
    layers: list[nn.Module] = [nn.Linear(4, 12), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*layers, nn.Linear(12, outputs))


def point_trained(network: nn.Module, x: Floats, y: Tensor, loss: Any) -> nn.Module:
    """After a few steps of plain gradient descent."""
    rows, optimiser = torch.from_numpy(x).float(), torch.optim.SGD(network.parameters(), 0.1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for _ in range(10):
            optimiser.zero_grad()
            loss(network.train()(rows), y).backward()
            optimiser.step()
    return network
