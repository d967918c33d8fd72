"""Deploying a head of three columns that no part of it has heard of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import rdeepsense as rds
from rdeepsense import heads, link
from rdeepsense._progress import Silent
from rdeepsense.deploy import fine_tune, load
from rdeepsense.deploy.fine_tune import fine_tuned
from rdeepsense.deploy.fold import fold
from rdeepsense.deploy.quality import quality
from rdeepsense.deploy.quantise import NetworkRunner, quantise
from rdeepsense.distributions import Gaussian
from rdeepsense.dropout import StochasticNetwork
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import fitted_model
from rdeepsense.heads import GaussianParams, Head
from rdeepsense.link import Column, Link, LocationWidth


class TwoNoises(Head):
    """var = softplus(b) + exp(c) + 1e-4."""

    start: ClassVar[tuple[float, ...]] = (0.0, 0.0)

    link: ClassVar[Link] = LocationWidth(
        Column(0),
        link.sqrt(link.add(link.add(link.softplus(Column(1)), link.exp(Column(2))), 1e-4)),
    )

    def forward(self, raw: Tensor) -> GaussianParams:
        mean, b, c = raw.split(self.outputs, dim=-1)
        return GaussianParams(mean, functional.softplus(b) + c.exp() + 1e-4)

    def unit(self) -> Gaussian:
        return Gaussian(np.zeros(self.outputs), 1.0)


class Squared(TwoNoises):
    """Its location is not a column."""

    link: ClassVar[Link] = LocationWidth(link.square(Column(0)), link.softplus(Column(1)))


def with_head(kind: type[Head], last: nn.Module) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal((50, 0), (5, 1), (300, 2))
    model = rds.RDeepSenseRegressor(
        hidden=(8,), epochs=2, random_state=0, verbose=False, effort="quick"
    )
    model.fit(X, X + rng.normal(size=X.shape))
    body = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), last)
    members = (StochasticNetwork(body, kind(2), "2").eval(),)
    networks = replace(model.fitted_.networks, members=members)
    model.fitted_ = replace(model.fitted_, model=networks)
    return model


@pytest.fixture
def model() -> Iterator[Any]:
    torch.manual_seed(0)
    heads.register("two noises", TwoNoises)
    yield with_head(TwoNoises, nn.Linear(8, 6))
    heads.unregister("two noises")


def test_every_form(model: Any, tmp_path: Path) -> None:
    X = model.fitted_.kept_rows[0]
    mean, std = model.predict(X, return_std=True)
    rds.export(model, tmp_path / "m")
    found = load(tmp_path / "m")
    assert found.facts.head == "two noises"
    np.testing.assert_allclose(found.predict(X, return_std=True), (mean, std), rtol=1e-9)
    report = rds.export(model, tmp_path / "m.onnx", to="onnx")
    assert report.quality is not None
    assert abs(report.quality.nll_change) < 1e-5


def test_through_torch_as_well(model: Any, tmp_path: Path) -> None:
    model.fitted_.networks.members[0].body.insert(2, nn.Tanh())
    model.fitted_.networks.members[0].output = "3"
    report = rds.export(model, tmp_path / "m.onnx", to="onnx")
    assert report.quality is not None
    assert abs(report.quality.nll_change) < 1e-5


def test_eight_bits_and_fine_tuning(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine_tune, "STEPS", 20)
    fitted, folded, (X, y) = fitted_model(model), fold(model), model.fitted_.kept_rows
    for network in (quantise(folded, X), fine_tuned(fitted, folded, X, y, Silent())):
        assert abs(quality(NetworkRunner(folded, network), fitted, X, y).nll_change) < 0.1


def test_a_location_that_is_no_column_is_refused() -> None:
    with pytest.raises(InputError, match="link of Squared cannot be folded: its location must be"):
        fold(with_head(Squared, nn.Linear(8, 4)))
