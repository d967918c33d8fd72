"""Dense layers on windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rdeepsense as rds
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.networks import Dense, Flattened
from rdeepsense.networks.base import built

SMALL: dict[str, Any] = {"epochs": 1, "random_state": 0, "verbose": False, "device": "cpu"}


def test_it_is_the_dense_network_of_the_flat_window() -> None:
    shape = (5, 4)
    network = built(Flattened((7, 6)), shape, 2, 0, seed=3)
    flat = built(Dense((7, 6)), (20,), 2, 0, seed=3)
    x = torch.randn(9, *shape, generator=torch.Generator().manual_seed(0))
    assert torch.equal(network(x), flat(x.flatten(1)))


def test_conversion_finds_every_layer() -> None:
    network = built(Flattened((7, 6)), (5, 4), 2, 0, seed=3)
    found = rds.convert(network, drop_prob=(0.1, 0.2), example=torch.zeros(2, 5, 4))
    drops = [layer.drop_prob for layer in found.body if hasattr(layer, "drop_prob")]
    assert drops == [0.0, 0.1, 0.2]


def test_refusals() -> None:
    with pytest.raises(rds.InputError, match=r"takes windows .*hidden=\(64, 64\)"):
        Flattened().check((3,))
    Flattened().check((4, 3))
    with pytest.raises(rds.InputError, match="width in hidden = 0"):
        Flattened((0,))
    assert Flattened((5,)) != Dense((5,))


def test_a_file_may_tell_of_many_parameters(tmp_path: Path) -> None:
    """Layers of 64 units on windows of 20,000 numbers have more than 2^20."""
    X = np.random.default_rng(0).normal(size=(20, 4, 3))
    model = rds.RDeepSenseRegressor(hidden="auto", **SMALL).fit(X, X[:, :, 0].mean(1))
    assert model.fitted_.networks.architecture == Flattened((64, 64))
    model.save(tmp_path / "m")
    header, tensors = model_file.read(tmp_path / "m")
    header["selection"]["architectures"][0]["parameters"] = 2**21
    model_file.write(tmp_path / "m", header, tensors)
    np.testing.assert_array_equal(rds.load(tmp_path / "m").predict(X), model.predict(X))
