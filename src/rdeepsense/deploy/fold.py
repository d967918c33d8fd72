"""From a fitted model to plain dense layers: nothing changes but the rounding.

With inputs (x - shift) / scale and targets s y + t, W_1 is divided by the input scale, the rows of
the location in the last layer are multiplied by s and t is added to their bias; a temperature T
divides the last layer of a classifier. What the link makes of the other rows cannot be folded:
their factor stands beside as `spread`. An embedding of the inputs stays as it was trained, and so
do the columns of W_1 that read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from rdeepsense import __version__
from rdeepsense.arrays import Floats
from rdeepsense.calibration import Calibration, Isotonic, Scale, Temperature
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.data.scaling import Scaler
from rdeepsense.deploy.dense_layers import (
    WeightBias,
    before_last,
    dense_layers,
    embedding_of,
    flat,
    weight_bias,
    without_embedding,
)
from rdeepsense.deploy.fold_laplace import fitted_epistemic, fold_laplace
from rdeepsense.deploy.folded.embedding import Embedding
from rdeepsense.deploy.folded.facts import Facts, Intervals
from rdeepsense.deploy.folded.layers import DenseLayer, Layers
from rdeepsense.deploy.folded.model import Folded
from rdeepsense.deploy.folded.output import Output
from rdeepsense.distributions import LocationScale, Recalibrated
from rdeepsense.errors import InputError
from rdeepsense.estimators.base import DistributionEstimator, fitted_model
from rdeepsense.fitting.fitted import Fitted
from rdeepsense.heads import HEADS, Head
from rdeepsense.link import Column, Expression, LocationWidth, Operation
from rdeepsense.windowing.stream import Smoothing

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)


def fold(model: DistributionEstimator, epistemic: str | None = None) -> Folded:
    """Fold a fitted RDeepSense estimator whose network is fully connected with ReLU.

    With `epistemic` "laplace" it is that of `predict_dist(X, epistemic="laplace")`.
    """
    return fold_fitted(fitted_model(model), epistemic)


def fold_fitted(fitted: Fitted, epistemic: str | None = None) -> Folded:
    """Fold all layers of a fitted model."""
    check_one_pass(fitted)
    modules = flat(fitted.network.body)
    embedding, modules = embedding_of(modules), without_embedding(modules)
    layers = dense_layers(modules)
    if embedding is not None and len(layers) < 2:
        raise InputError("an embedding that only the last layer reads cannot be folded")
    scaler = fitted.inputs.scaler
    layers[0][0][:, : len(scaler.scale)] /= scaler.scale
    source = _digest(layers, [scaler], fitted, embedding)
    calibration, noise_share = fitted.calibration, np.ones(1)
    if epistemic is not None:
        found = fitted_epistemic(fitted, epistemic)
        calibration, noise_share = found.calibrations[epistemic], found.noise_share
    last, output, intervals = _last(fitted, layers[-1], calibration, noise_share, epistemic is None)
    if epistemic is not None:
        before, factor = dense_layers(before_last(modules)), _factor(fitted, calibration)
        laplace = fold_laplace(fitted, before, len(layers), factor)
        output = Output(output.link, output.spread, output.shift, laplace)
    dense = tuple(DenseLayer(np.ascontiguousarray(w), b) for w, b in (*layers[:-1], last))
    facts = _facts(fitted, calibration, intervals, source)
    folded = Layers(scaler.shift, scaler.scale, dense, embedding, scaler.encoding)
    return Folded(facts, folded, output)


def fold_last(fitted: Fitted) -> tuple[Facts, DenseLayer, Output]:
    """Fold the last layer alone, of a network whose other layers are not dense."""
    check_one_pass(fitted)
    network = fitted.network
    linear = network.body.get_submodule(network.output)
    assert isinstance(linear, nn.Linear)
    layer = weight_bias(linear)
    ones = Scaler(np.zeros(linear.in_features), np.ones(linear.in_features))
    digest = hashlib.sha256(_digest([layer], [ones], fitted).encode())
    scaler = fitted.inputs.scaler
    weights = [value.detach().cpu().numpy() for value in network.state_dict().values()]
    digest.update(_bytes((scaler.shift, scaler.scale, *weights)))
    last, output, intervals = _last(fitted, layer, fitted.calibration, np.ones(1), True)
    facts = _facts(fitted, fitted.calibration, intervals, digest.hexdigest())
    return facts, DenseLayer(*last), output


def check_one_pass(fitted: Fitted) -> None:
    """Refuse a method whose prediction is not one pass of one network, as it was trained."""
    if fitted.correction is not None:
        raise InputError(
            "an adapted model cannot be exported: what it has learnt does not fit into the trained "
            "layers; export the model that it was adapted from"
        )
    if not fitted.takes_one_pass:
        raise InputError(
            f"a {fitted.method} takes more than one pass, so it cannot be folded; "
            "accepted: RDeepSenseRegressor, RDeepSenseClassifier"
        )


def _last(
    fitted: Fitted,
    layer: WeightBias,
    calibration: Calibration | None,
    noise_share: Floats,
    conformal: bool,
) -> tuple[WeightBias, Output, Intervals | None]:
    """Fold target scale and calibration into the last layer, and what is left into an output."""
    weight, bias = layer
    head, target = fitted.network.head, fitted.target_scaler
    if target is None:
        heat = calibration.factor if isinstance(calibration, Temperature) else 1.0
        return (weight / heat, bias / heat), Output(head.link), None
    _check_location(head)
    outputs = len(target.scale)
    weight, bias = weight.copy(), bias.copy()
    weight[:outputs] *= target.scale[:, None]
    bias[:outputs] = bias[:outputs] * target.scale + target.shift
    # What the calibrated distribution says of a centre 0 and a width 1, output by output.
    plain = head.unit()
    unit: LocationScale | Recalibrated = plain
    if isinstance(calibration, Isotonic):
        unit = Recalibrated(plain, calibration.stated, calibration.actual)
    width = _factor(fitted, calibration)
    output = Output(
        head.link, width * unit.std * np.sqrt(noise_share), np.asarray(unit.mean / unit.std)
    )
    # Conformal thresholds are of the plain std.
    return (weight, bias), output, _intervals(unit, fitted.conformal if conformal else None)


def _check_location(head: Head) -> None:
    """Refuse a link into whose location the target's scale could not go."""
    link = head.link
    if not isinstance(link, LocationWidth) or link.location != Column(0) or _reads_it(link.width):
        raise InputError(
            f"the link of {type(head).__name__} cannot be folded: its location must be column 0, "
            "and its width must not read that column"
        )


def _reads_it(expression: Expression | None) -> bool:
    if isinstance(expression, Operation):
        return any(_reads_it(argument) for argument in expression.arguments)
    return expression == Column(0)


def _factor(fitted: Fitted, calibration: Calibration | None) -> Floats:
    """Compute what target scale and calibration multiply a std by."""
    if fitted.target_scaler is None:
        return np.ones(1)
    factor = calibration.factor if isinstance(calibration, Scale | Isotonic) else 1.0
    return np.asarray(fitted.target_scaler.scale * factor)


def _facts(
    fitted: Fitted, calibration: Calibration | None, intervals: Intervals | None, source: str
) -> Facts:
    return Facts(
        inputs=fitted.inputs.shape[-1],
        outputs=fitted.target.outputs,
        head=_name_of(fitted.network.head),
        features=fitted.inputs.names,
        feature_units=fitted.inputs.units,
        targets=fitted.target.names,
        target_units=fitted.target.units,
        classes=fitted.target.classes,
        missing=fitted.inputs.missing,
        one_output=not fitted.target.is_classes and fitted.target.shape == (),
        calibration=None if calibration is None else type(calibration).__name__.lower(),
        intervals=intervals,
        guard=fitted.guard,
        encoding=fitted.inputs.encoding,
        version=__version__,
        source=source,
        window=fitted.inputs.shape[:-1],
        recipe=fitted.recipe,
        smoothing=_smoothing(fitted),
        dated=fitted.inputs.dated,
        double=fitted.inputs.scaler.double_columns,
    )


def _smoothing(fitted: Fitted) -> Smoothing | None:
    if fitted.recipe is None or not fitted.target.is_classes:
        return None
    return fitted.smoothing or Smoothing.unseen(fitted.recipe)


def _name_of(head: Head) -> str:
    names = (name for name, kind in HEADS.items() if kind is type(head))
    return next(names, type(head).__name__)


def _intervals(unit: LocationScale | Recalibrated, conformal: Conformal | None) -> Intervals:
    low, high = (
        np.array([(unit.interval(c)[side] - unit.mean) / unit.std for c in COVERAGES])
        for side in (0, 1)
    )
    reach = None
    if conformal is not None and conformal.is_common:
        reach = np.array([conformal.threshold(c, 1)[0] for c in COVERAGES])
    return Intervals(np.array(COVERAGES), low, high, reach)


def _digest(
    layers: list[WeightBias],
    scalers: list[Scaler],
    fitted: Fitted,
    embedding: Embedding | None = None,
) -> str:
    """Compute SHA-256 of the trained numbers, to tell which model an artefact came from."""
    arrays = [array for layer in layers for array in layer]
    arrays += [] if embedding is None else list(vars(embedding).values())
    encoding = fitted.inputs.encoding
    arrays += [] if encoding is None else list(encoding.arrays().values())
    for scaler in (*scalers, fitted.target_scaler):
        arrays += [] if scaler is None else [scaler.shift, scaler.scale]
    if fitted.calibration is not None:
        arrays += list(fitted.calibration.arrays().values())
    return hashlib.sha256(_bytes(arrays)).hexdigest()


def _bytes(arrays: Iterable[NDArray[Any]]) -> bytes:
    return b"".join(np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays)
