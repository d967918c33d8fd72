"""What an adapted model has learnt, put into the last layer of a copy of its network.

With phi = [h, 1] and a correction phi^T D of medians (in units of the target's scale) or of
calibrated logits, the last layer's W h + b becomes

    numbers   (W + D^T) h + ...        of the rows of the location
    classes   (W + T D^T) h + ...      as the temperature T divides it later

which is exact. What labels leave of the variance of numbers changes from row to row, unless the
model was fitted without groups, and then it stays: `Narrowing`, which C has.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from rdeepsense.adaptation.corrections import MOST_SHARE, AdaptedNumbers
from rdeepsense.arrays import Floats
from rdeepsense.calibration import Isotonic, Temperature
from rdeepsense.deploy.dense_layers import (
    before_last,
    dense_layers,
    flat,
    is_dense,
    without_embedding,
)
from rdeepsense.deploy.folded.narrowing import Narrowing
from rdeepsense.errors import InputError
from rdeepsense.fitting.fitted import Fitted, GroupCorrection


def settled(fitted: Fitted, epistemic: str | None = None) -> Fitted:
    """Return a model with the same medians and no correction beside its network.

    Its variance is that of before the labels; `narrowing` has what they leave of it.
    """
    known = fitted.correction
    if known is None:
        return fitted
    if epistemic is not None:
        raise InputError(
            f"epistemic={epistemic!r} is that of the frozen model, and this one was adapted; "
            "export the model that it was adapted from"
        )
    heat = fitted.calibration.factor if isinstance(fitted.calibration, Temperature) else 1.0
    network = copy.deepcopy(fitted.network)
    layer = network.body.get_submodule(network.output)
    assert isinstance(layer, nn.Linear)
    _add(layer, heat * _change(known))
    model = replace(fitted.networks, members=(network,))
    return replace(fitted, model=model, correction=None)


def narrows(fitted: Fitted) -> bool:
    """Tell whether labels have narrowed predictions, from row to row."""
    known = fitted.correction
    if known is None or not isinstance(known.state, AdaptedNumbers):
        return False
    return bool(known.state.prior.shares.any())


def check_steady(fitted: Fitted, to: str) -> None:
    """Refuse a format that cannot narrow predictions from row to row."""
    if narrows(fitted):
        raise InputError(
            f"an adapted model cannot be exported to {to!r} where labels have narrowed its "
            "predictions: how far changes from row to row; accepted: to='c99', in float32"
        )


def narrowing(fitted: Fitted, dtype: str, live: bool) -> Narrowing | None:
    """Fold what labels leave of the variance, if they take anything away.

    With C0 = L L^T the ratio phi^T C phi / phi^T C0 phi is psi^T M psi / psi^T psi of
    psi = L^T phi, with M = L^-1 C L^-T, and psi may be turned so that B is triangular, as in
    `fold_live`.
    """
    if not narrows(fitted):
        return None
    _check_narrowing(fitted, dtype, live)
    known = fitted.correction
    assert known is not None
    state = known.state
    assert isinstance(state, AdaptedNumbers)
    turned, left = [], []
    for start, covariance in zip(state.start, state.covariance, strict=True):
        lower = np.linalg.cholesky(start)
        own = np.linalg.solve(lower, np.linalg.solve(lower, covariance).T)
        q, upper = np.linalg.qr(_unprojected(known, lower).T)
        turned.append(upper.T)
        left.append(q.T @ (own + own.T) @ q / 2)
    return Narrowing(np.array(turned), np.array(left), state.prior.shares, 1 - MOST_SHARE)


def _check_narrowing(fitted: Fitted, dtype: str, live: bool) -> None:
    what = "labels have narrowed the predictions of this adapted model, which C computes in"
    if dtype != "float32":
        raise InputError(f"{what} float32; dtype={dtype!r} cannot")
    if live:
        raise InputError(
            "live=True cannot go on from an adapted model whose predictions labels have narrowed; "
            "export the model that it was adapted from, and observe the labels there"
        )
    if isinstance(fitted.calibration, Isotonic):
        raise InputError(f'{what} for calibrate="scale" alone, not isotonic')
    if not is_dense(fitted.network.body):
        return  # the numbers that the last step of a graph reads are checked there
    modules = without_embedding(flat(fitted.network.body))
    layers = dense_layers(modules)
    if len(layers) < 2 or len(dense_layers(before_last(modules))) == len(layers):
        raise InputError(f"{what} networks with a hidden layer and a ReLU before the last layer")


def _change(known: GroupCorrection) -> Floats:
    """Return D (hidden + 1, outputs) of the last hidden layer's own numbers, and the 1."""
    state = known.state
    found: Floats = state.weights
    if isinstance(state, AdaptedNumbers):
        found = state.weights @ state.prior.directions.T
    return _unprojected(known, found)


def _unprojected(known: GroupCorrection, of_features: Floats) -> Floats:
    """Return rows for the last hidden layer's own numbers, and the 1, from those of phi."""
    if known.projection is None:
        return of_features
    return np.vstack([known.projection @ of_features[:-1], of_features[-1:]])


def _add(layer: nn.Linear, change: Floats) -> None:
    """Add D to the first columns of a layer."""
    more = torch.from_numpy(np.ascontiguousarray(change.T))
    outputs = len(more)
    with torch.no_grad():
        bias: torch.Tensor | None = layer.bias
        if bias is None:
            layer.bias = nn.Parameter(torch.zeros_like(layer.weight[:, 0]))
        layer.weight[:outputs] += more[:, :-1].to(layer.weight)
        layer.bias[:outputs] += more[:, -1].to(layer.bias)
