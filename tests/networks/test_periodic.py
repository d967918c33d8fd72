"""Periodic embeddings: the formula, refusals, fitting, files, and what is not known of a row."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import rdeepsense as rds
from rdeepsense.datasets import simulate
from rdeepsense.dropout import DropoutLinear, convert
from rdeepsense.errors import InputError
from rdeepsense.networks import Periodic
from rdeepsense.networks.periodic import PeriodicEmbedding

TASK = simulate(300, 0)
SMALL: dict[str, Any] = {"epochs": 3, "random_state": 0, "verbose": False, "device": "cpu"}


def test_one_row_by_hand() -> None:
    embedding = PeriodicEmbedding(2, 1, 2, 0.3)
    with torch.no_grad():
        embedding.frequency.copy_(torch.tensor([[0.25], [-1.0]]))
        embedding.weight.copy_(torch.tensor([[[1.0, 2.0], [-1.0, 0.0]], [[0.5, 0.5], [0.0, 3.0]]]))
        embedding.bias.copy_(torch.tensor([[0.5, 0.25], [0.0, -1.0]]))
        found = embedding(torch.tensor([[1.0, 1 / 12]]))
    # Angles of a quarter of a period and of minus a twelfth: sines 1 and -1/2, cosines 0, sqrt(3/4)
    third = 0.5 * (-0.5 + math.sqrt(0.75))
    wanted = [1.0, 1 / 12, 1.5, 0.0, third, 3 * math.sqrt(0.75) - 1]
    torch.testing.assert_close(found, torch.tensor([wanted]), rtol=1e-6, atol=1e-6)


def test_far_rows_are_read_at_the_reach_and_the_inputs_as_they_are() -> None:
    torch.manual_seed(0)
    embedding = PeriodicEmbedding(3, 4, 5, 0.3)
    assert embedding.outputs == 18
    with torch.no_grad():
        near, far = embedding(torch.tensor([[100.0, -100, 2], [1e30, -1e9, 2]]))
    assert far[:3].tolist() == [torch.tensor(1e30).item(), -1e9, 2]
    assert torch.equal(near[3:], far[3:])


def test_many_rows_are_taken_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    embedding, z = PeriodicEmbedding(3, 4, 5, 0.3), torch.randn(50, 3)
    with torch.no_grad():
        whole = embedding(z)
        monkeypatch.setattr("rdeepsense.networks.periodic.NUMBERS", 24 * 7)
        torch.testing.assert_close(embedding(z), whole)
    assert torch.equal(embedding(z), whole)  # training has its own bound


def test_large_angles_keep_what_32_bits_hold_of_them() -> None:
    torch.manual_seed(0)
    embedding = PeriodicEmbedding(1, 16, 8, 3.0)
    z = torch.linspace(-100, 100, 4_001)[:, None]
    with torch.no_grad():
        found, wanted = embedding(z), embedding.double()(z.double())
    # A product of some hundreds of periods is rounded to 1.5e-5 of one.
    assert (found - wanted).abs().max() < 5e-4


def test_the_first_layer_reads_the_sensors() -> None:
    network = Periodic((6, 5)).build((3,), 2, member=0)
    example = torch.zeros(2, 3)
    for found in (
        convert(network, drop_prob=0.2),
        convert(network, drop_prob=0.2, example=example),
    ):
        probs = [m.drop_prob for m in found.modules() if isinstance(m, DropoutLinear)]
        assert probs == [0.0, 0.2, 0.2]


def test_refusals() -> None:
    for arguments, words in [
        ({"hidden": ()}, "hidden = "),
        ({"hidden": (0,)}, "a width in hidden = 0"),
        ({"frequencies": 0}, "frequencies = 0 is not a whole number"),
        ({"width": 1.5}, "width = 1.5 is not a whole number"),
        ({"width": True}, "width = True is not a whole number"),
        ({"std": 0}, "std = 0 is not a finite number > 0"),
        ({"std": math.nan}, "std = nan"),
    ]:
        with pytest.raises(InputError, match=words):
            Periodic(**arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="X has 3 axes"):
        rds.RDeepSenseRegressor(network=Periodic(), **SMALL, effort="quick").fit(
            np.ones((20, 3, 2)), np.arange(20)
        )


def test_it_is_fitted_stored_and_loaded(tmp_path: Path) -> None:
    spec = Periodic((7, 6), frequencies=3, width=2, std=0.5)
    model = rds.RDeepSenseRegressor(network=spec, **SMALL, effort="quick").fit(TASK.X, TASK.y)
    assert isinstance(model.network_.body, nn.Sequential)
    assert isinstance(model.network_.body[0], PeriodicEmbedding)
    model.save(tmp_path / "m")
    loaded = rds.load(tmp_path / "m")
    assert loaded.network == spec
    assert loaded.predict_dist(TASK.X) == model.predict_dist(TASK.X)
    assert loaded.fit(TASK.X, TASK.y).predict_dist(TASK.X) == model.predict_dist(TASK.X)


def test_frequencies_and_weights_are_learnt_and_members_differ() -> None:
    model = rds.SSPRegressor(members=2, network=Periodic((5,)), **SMALL).fit(TASK.X, TASK.y)
    first, second = (network.body[0] for network in model.fitted_.networks.members)
    for name, own in first.named_parameters():
        assert not torch.equal(own, second.get_parameter(name)), name


@pytest.mark.parametrize("method", ["laplace", "delta", "moments", "sample"])
def test_what_is_not_known_of_a_row(method: str) -> None:
    model = rds.RDeepSenseRegressor(network=Periodic((16, 8)), **SMALL, effort="quick").fit(
        TASK.X, TASK.y
    )
    far = TASK.X.mean(0) + 20 * TASK.X.std(0) * np.ones((1, TASK.X.shape[1]))
    near, out = (np.median(model.epistemic_std(rows, method)) for rows in (TASK.X, far))
    assert 0 < near < out < np.inf
    if method in ("laplace", "delta"):
        assert np.isfinite(model.predict_dist(TASK.X, epistemic=method).std).all()
