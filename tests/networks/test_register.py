"""An architecture defined here alone: fitted, stored, loaded, ensembled and exported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import rdeepsense as rds
from rdeepsense import networks
from rdeepsense.datasets import simulate
from rdeepsense.errors import InputError, ModelFileError

TASK = simulate(300, 0)
SMALL: dict[str, Any] = {"epochs": 3, "random_state": 0, "verbose": False, "device": "cpu"}


class ResidualNetwork(nn.Module):
    def __init__(self, inputs: int, width: int, blocks: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.last = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        for block in self.blocks:
            h = h + torch.relu(block(h))
        output: Tensor = self.last(h)
        return output


@dataclass(frozen=True)
class Residual:
    width: int = 8
    blocks: int = 2

    def check(self, shape: tuple[int, ...]) -> None:
        networks.check_table(shape)

    def build(self, shape: tuple[int, ...], outputs: int, member: int) -> nn.Module:
        return ResidualNetwork(shape[0], self.width, self.blocks, outputs)

    def arguments(self) -> dict[str, Any]:
        return asdict(self)


@pytest.fixture
def registered() -> Iterator[None]:
    networks.register(Residual)
    yield
    networks.unregister(Residual)


def test_it_is_fitted_stored_and_loaded(tmp_path: Path, registered: None) -> None:
    model = rds.RDeepSenseRegressor(network=Residual(6, 1), **SMALL, effort="quick").fit(
        TASK.X, TASK.y
    )
    assert isinstance(model.network_.body, ResidualNetwork)
    model.save(tmp_path / "m")
    loaded = rds.load(tmp_path / "m")
    assert loaded.network == Residual(6, 1)
    assert loaded.predict_dist(TASK.X) == model.predict_dist(TASK.X)
    assert loaded.fit(TASK.X, TASK.y).predict_dist(TASK.X) == model.predict_dist(TASK.X)


def test_it_is_exported_as_onnx(tmp_path: Path) -> None:
    model = rds.RDeepSenseRegressor(network=Residual(6, 2), **SMALL, effort="quick").fit(
        TASK.X, TASK.y
    )
    report = rds.export(model, tmp_path / "m.onnx", to="onnx")
    assert report.quality is not None
    assert abs(report.quality.nll_change) < 1e-5


def test_members_of_an_ensemble_differ() -> None:
    model = rds.SSPRegressor(members=3, network=Residual(4, 1), **SMALL).fit(TASK.X, TASK.y)
    means = [model.predict_dist(TASK.X, samples=k).mean for k in (1, 2, 3)]
    assert not np.array_equal(means[0], means[1])
    assert not np.array_equal(means[1], means[2])


def test_a_file_of_an_unknown_architecture_says_how_to_make_it_known(
    tmp_path: Path, registered: None
) -> None:
    rds.RDeepSenseRegressor(network=Residual(), **SMALL, effort="quick").fit(TASK.X, TASK.y).save(
        tmp_path / "m"
    )
    networks.unregister(Residual)
    with pytest.raises(ModelFileError, match=r"'Residual' is unknown.*networks\.register"):
        rds.load(tmp_path / "m")
    networks.register(Residual)


def test_refusals(registered: None) -> None:
    with pytest.raises(InputError, match="X has 3 axes"):
        rds.RDeepSenseRegressor(network=Residual(), **SMALL, effort="quick").fit(
            np.ones((20, 3, 2)), np.arange(20)
        )
    with pytest.raises(InputError, match="network is a type"):
        rds.RDeepSenseRegressor(network=Residual, effort="quick").fit(TASK.X, TASK.y)  # type: ignore[arg-type]
    other = type("Residual", (Residual,), {})
    with pytest.raises(InputError, match="'Residual' is registered already"):
        networks.register(other)
