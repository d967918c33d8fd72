"""Links as ONNX nodes and as torch operations compute what numpy does."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from deploy.folded.test_output import RICH

from rdeepsense import link
from rdeepsense.deploy.folded.model import (
    DenseLayer,
    Facts,
    Folded,
    LastLayerLaplace,
    Layers,
    MeanStd,
    Output,
)
from rdeepsense.deploy.onnx.nodes import TensorArithmetic, model
from rdeepsense.deploy.quantise import prepare
from rdeepsense.link import Column, LocationWidth, evaluate

OUTPUTS = 2
LINKS = {
    "rich": RICH,
    "plain": LocationWidth(Column(0), link.exp(Column(1))),
    "width from the location too": LocationWidth(
        Column(0), link.add(link.softplus(Column(0)), link.square(Column(1)))
    ),
    "last column first": LocationWidth(Column(1), link.softplus(Column(0))),
}


def folded_with(chosen: LocationWidth, shift: float, laplace: bool) -> Folded:
    rng = np.random.default_rng(0)
    columns = OUTPUTS * chosen.columns
    dense = (
        DenseLayer(rng.normal(size=(6, 3)), rng.normal(size=6)),
        DenseLayer(0.5 * rng.normal(size=(columns, 6)), rng.normal(size=columns)),
    )
    root = np.triu(rng.normal(size=(10, 10)))
    added = LastLayerLaplace(root, np.array([0.5, 2.0]), np.ones(2)) if laplace else None
    output = Output(chosen, np.array([1.0, 3.0]), np.full(2, shift), added)
    return Folded(Facts(3, OUTPUTS), Layers(np.zeros(3), np.ones(3), dense), output)


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("shift", [0.0, 0.25])
@pytest.mark.parametrize("name", LINKS)
def test_nodes(name: str, shift: float, laplace: bool) -> None:
    folded = folded_with(LINKS[name], shift, laplace)
    X = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
    proto = model(folded, prepare(folded, "float32", X))
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = session.run(None, {"x": X})
    wanted = [part for part in folded.run(X) if part is not None]
    assert len(found) == len(wanted) == 2 + laplace
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", LINKS)
def test_tensors(name: str) -> None:
    chosen = LINKS[name]
    raw = np.random.default_rng(0).normal(size=(5, OUTPUTS * chosen.columns))
    wanted = Output(chosen, np.ones(OUTPUTS), np.zeros(OUTPUTS)).finish(raw)
    assert isinstance(wanted, MeanStd)
    assert chosen.width is not None
    arithmetic = TensorArithmetic(torch.from_numpy(raw).chunk(chosen.columns, 1))
    np.testing.assert_allclose(evaluate(chosen.location, arithmetic), wanted.mean, rtol=1e-12)
    np.testing.assert_allclose(evaluate(chosen.width, arithmetic), wanted.std, rtol=1e-12)
