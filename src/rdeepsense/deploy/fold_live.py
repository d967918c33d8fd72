"""What a model needs to learn on in C, from a fitted one: see `live.row_pass` for that in Python.

psi = B^T phi may be turned by any orthogonal matrix: the prior of a filter is the identity, so
nothing that it predicts changes. With B^T = Q R, R^T is lower triangular whatever order and units
the last layer reads its numbers in, and only a triangle needs to be stored.
"""

from __future__ import annotations

import numpy as np
from torch import nn

from rdeepsense.adaptation.choose import basis, of_last_layer
from rdeepsense.adaptation.rates import Rates
from rdeepsense.arrays import Floats
from rdeepsense.calibration import Isotonic
from rdeepsense.deploy.c.graph.stored import StoredGraph
from rdeepsense.deploy.c.live import CLive
from rdeepsense.deploy.dense_layers import before_last, dense_layers, flat, without_embedding
from rdeepsense.deploy.graph_hidden import check_hidden
from rdeepsense.deploy.networks import FloatNetwork
from rdeepsense.deploy.quantise import Int8Network
from rdeepsense.distributions import Gaussian, StudentT
from rdeepsense.errors import InputError, share
from rdeepsense.fitting.fitted import Fitted


def fold_live(
    fitted: Fitted,
    network: FloatNetwork | Int8Network | StoredGraph,
    coverage: float,
    rates: Rates,
) -> CLive:
    """Take what C needs beside a stored network; refuse a model that cannot learn there."""
    _check(fitted, network)
    if not 0 < coverage < 1:
        raise InputError(f"coverage = {coverage!r}; accepted: between 0 and 1{share(coverage)}")
    assert fitted.target_scaler is not None
    unit = fitted.network.head.unit()
    if not isinstance(unit, Gaussian | StudentT):
        raise InputError(
            f"live=True is not for the head {type(fitted.network.head).__name__}; accepted: "
            'likelihood="gaussian" and "student"'
        )
    return CLive(
        triangular(_stored(_folded_basis(fitted, network, rates), network)),
        fitted.target_scaler.scale,
        unit.interval(coverage)[1] / unit.std,
        unit.df if isinstance(unit, StudentT) else None,
        rates,
        coverage,
    )


def triangular(turned: Floats) -> Floats:
    """Turn the coordinates so that row i of B has at most i + 1 numbers."""
    return np.ascontiguousarray(np.linalg.qr(turned.T)[1].T)


def _check(fitted: Fitted, network: FloatNetwork | Int8Network | StoredGraph) -> None:
    if fitted.target.is_classes:
        dense = ', and to="onnx" with features=True gives a host what it needs'
        dense += '; to="web" learns on from classes of windows alone'
        raise InputError(
            "live=True is for numbers, and this model predicts classes; model.live() learns on in "
            f"Python{'' if isinstance(network, StoredGraph) else dense}"
        )
    if isinstance(fitted.calibration, Isotonic):
        raise InputError(
            "live=True cannot stretch an isotonic calibration in C; fit the model with "
            'calibrate="scale"'
        )
    if fitted.epistemic is None:
        raise InputError(
            "the model's file is older than what live=True needs, the information of its training "
            "rows; fit the model again"
        )
    if isinstance(network, StoredGraph):
        check_hidden(fitted, network.graph)
    elif len(network.layers) < 2:
        raise InputError("live=True needs a network with a hidden layer")


def _folded_basis(
    fitted: Fitted, network: FloatNetwork | Int8Network | StoredGraph, rates: Rates
) -> Floats:
    """Return B of the numbers that the last folded layer reads."""
    assert fitted.epistemic is not None
    layer = fitted.network.body.get_submodule(fitted.network.output)
    assert isinstance(layer, nn.Linear)
    information = of_last_layer(fitted.epistemic.laplace.root, layer.in_features)
    turned = basis(information, fitted.training.rows, rates.rows, rates.between)
    if isinstance(network, StoredGraph):
        return turned
    before = dense_layers(before_last(without_embedding(flat(fitted.network.body))))
    if len(before) < len(network.layers):
        return turned
    weight, bias = before[-1]  # no ReLU stands between the last two, which became one
    return np.vstack([weight.T @ turned[:-1], turned[-1:] + bias @ turned[:-1]])


def _stored(turned: Floats, network: FloatNetwork | Int8Network | StoredGraph) -> Floats:
    """Put rows of B into the order and the units of what C has of the last hidden layer."""
    if isinstance(network, StoredGraph):
        return turned
    if isinstance(network, FloatNetwork):
        scale = np.full(len(turned) - 1, 1 / network.layers[-1].gain)
        order = np.arange(len(scale))
    else:
        assert network.unit is not None
        assert network.order is not None
        scale, order = network.unit, network.order
    return np.vstack([turned[:-1][order] * scale[:, None], turned[-1:]])
