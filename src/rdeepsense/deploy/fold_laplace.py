"""The Laplace approximation of a fitted model, folded: see `folded.laplace`."""

from __future__ import annotations

import numpy as np

from rdeepsense.arrays import Floats
from rdeepsense.deploy.folded.laplace import LastLayerLaplace, triangular
from rdeepsense.errors import InputError
from rdeepsense.fitting.epistemic import EpistemicPart
from rdeepsense.fitting.fitted import Fitted

PROBIT = np.pi / 8


def fitted_epistemic(fitted: Fitted, epistemic: str) -> EpistemicPart:
    """Return what was fitted of the epistemic part; refuse what cannot be exported."""
    if epistemic != "laplace":
        raise InputError(f"epistemic={epistemic!r} cannot be exported; accepted: 'laplace'")
    if fitted.epistemic is None:
        raise InputError(
            "the model's file is older than epistemic uncertainty; fit the model again to export "
            "it with epistemic='laplace'"
        )
    return fitted.epistemic


def fold_laplace(
    fitted: Fitted, before: list[tuple[Floats, Floats]], layers: int, factor: Floats
) -> LastLayerLaplace:
    """Fold the matrix for `layers` folded layers, and the numbers of each output.

    `before` are the layers that the network has before its last one, `factor` is what target scale
    and calibration multiply a std by.
    """
    network, found = fitted.network, fitted.epistemic
    assert found is not None
    ratio = found.laplace.ratio
    width = network.body.get_submodule(network.output).in_features
    root = found.laplace.root.astype(np.float64)
    last, inputs, constant = root[:width], root[width:-1], root[-1:]
    if len(before) == layers:  # no ReLU stands between the last two, which became one
        weight, bias = before[-1]
        last, constant = weight.T @ last, constant + bias @ last
    if layers == 1:  # the last layer reads the inputs, which may stand beside them once more
        last, inputs = last + inputs if len(inputs) else last, inputs[:0]
    root = triangular(np.concatenate([last, inputs, constant]))
    if network.head.is_classifier:
        return LastLayerLaplace(root, PROBIT * ratio, np.sqrt(ratio))
    unit_std = network.head.unit().std
    gain = ratio / (found.noise_share * unit_std**2)
    return LastLayerLaplace(root, gain, factor * np.sqrt(ratio))
