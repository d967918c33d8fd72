"""The Laplace approximation of a fitted estimator, folded: see `doubt`."""

from __future__ import annotations

from typing import Any

import numpy as np

from rdeepsense.deploy.folded.laplace import Doubt, Floats, triangular
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import Epistemic

PROBIT = np.pi / 8


def fitted_epistemic(estimator: Any, epistemic: str) -> Epistemic:
    """What the estimator knows of its doubt; refused where that cannot be exported."""
    if epistemic != "laplace":
        raise InputError(f"epistemic = {epistemic!r} cannot be exported; accepted: 'laplace'")
    if estimator.fitted_.epistemic is None:
        raise InputError(
            "the model's file is older than epistemic uncertainty; fit the model again to export "
            "it with --epistemic laplace"
        )
    fitted: Epistemic = estimator.fitted_.epistemic
    return fitted


def fold_doubt(
    estimator: Any,
    before: list[tuple[Floats, Floats]],
    layers: int,
    unit_std: Floats | None = None,
    factor: Floats | float = 1.0,
) -> Doubt:
    """The matrix for `layers` folded layers, and the numbers of each output.

    `before` are those that the network has before its last one. Of a regression, `unit_std` is the
    head's std at width 1 and `factor` what target scale and calibration multiply a std by.
    """
    fitted = estimator.fitted_.epistemic
    ratio = fitted.laplace.ratio
    network = estimator.network_
    width = network.body.get_submodule(network.output).in_features
    root = fitted.laplace.root.astype(np.float64)
    last, inputs, constant = root[:width], root[width:-1], root[-1:]
    if len(before) == layers:  # no ReLU stands between the last two, which became one
        weight, bias = before[-1]
        last, constant = weight.T @ last, constant + bias @ last
    if layers == 1:  # the last layer reads the inputs, which may stand beside them once more
        last, inputs = last + inputs if len(inputs) else last, inputs[:0]
    root = triangular(np.concatenate([last, inputs, constant]))
    if unit_std is None:
        return Doubt(root, PROBIT * ratio, np.sqrt(ratio))
    return Doubt(root, ratio / (fitted.noise_share * unit_std**2), factor * np.sqrt(ratio))
