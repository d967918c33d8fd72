"""Convolutions of every shape in C: strides, dilation, groups, and zeros wider than the kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from deploy.c_models import COMPILERS, library, predict, write
from torch import nn

from rdeepsense.deploy.c.graph import GraphSource
from rdeepsense.deploy.c.inputs import as_stored
from rdeepsense.deploy.fold import fold_graph
from rdeepsense.estimators import RDeepSenseRegressor

pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang")


def of_planes(*layers: nn.Module) -> nn.Module:
    """Windows of (8, 6) as two channels of 4 x 6."""
    body = (nn.Unflatten(1, (2, 4)), *layers, nn.ReLU(), nn.Flatten())
    return nn.Sequential(*body, nn.LazyLinear(1))


NETWORKS = {
    "strided": of_planes(nn.Conv2d(2, 5, 3, (2, 1), 1)),
    "dilated": of_planes(nn.Conv2d(2, 5, (2, 3), 1, (1, 2), (2, 2))),
    "grouped": of_planes(nn.Conv2d(2, 6, (1, 3), 1, (0, 1), groups=2), nn.ReLU(),
                         nn.Conv2d(6, 9, 2, groups=3)),
    "far": of_planes(nn.Conv2d(2, 5, (1, 2), 1, (0, 4)), nn.Tanh(), nn.Conv2d(5, 3, (1, 2), 3)),
    "many": of_planes(nn.Conv2d(2, 70, (1, 3), 1, (0, 1)), nn.ReLU(), nn.Conv2d(70, 66, (3, 1))),
}  # fmt: skip


@pytest.mark.everyday(2, "compilers")
@pytest.mark.parametrize("name", NETWORKS)
def test_c_agrees_with_torch_and_with_what_is_rounded(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 8, 6)), rng.normal(size=40)
    torch.manual_seed(0)
    network = NETWORKS[name]
    network(torch.zeros(1, 8, 6))
    model = RDeepSenseRegressor(
        network=network, epochs=1, random_state=0, verbose=False, effort="quick", device="cpu"
    ).fit(X[:32], y[:32], validation=(X[32:], y[32:]))  # else few rows of noise give a constant
    X = X.astype(np.float32)
    folded, wanted = fold_graph(model.fitted_), model.predict(X)
    source = GraphSource(folded, as_stored(folded, "float32"))
    folder = write(source, tmp_path / "float32")
    for flags in (("-O2",), ("-O2", "-DSMALL_STACK")):
        _, found = predict(library(folder, "gcc", *flags), source, X)
        assert np.abs(found[0][:, 0] - wanted).max() < 1e-5 * wanted.std(), flags
    stored = as_stored(folded, "int8")
    source = GraphSource(folded, stored)
    _, found = predict(library(write(source, tmp_path / "int8"), "gcc", "-O2"), source, X)
    told = folded.finish(stored.raw(X), X).mean[:, 0]
    far = np.abs(found[0][:, 0] - told) / told.std()
    assert np.quantile(far, 0.8) < 1e-5
    assert far.max() < 0.01  # a number amid two bytes may become either
    assert np.abs(told - wanted).max() < 0.1 * wanted.std()
