"""From a fitted estimator to plain dense layers: nothing changes but the rounding.

With inputs (x - shift) / scale and targets s y + t, W_1 is divided by the input scale, the rows of
the mean in the last layer are multiplied by s and t is added to their bias; a temperature T divides
the last layer of a classifier. What softplus makes of the other rows cannot be folded: their factor
stands beside as `spread`.
"""

from __future__ import annotations

import copy
import hashlib
import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from rdeepsense import __version__, model_file
from rdeepsense.calibration import Isotonic, Scale, Temperature
from rdeepsense.deploy.fold_laplace import fitted_epistemic, fold_doubt
from rdeepsense.deploy.folded.model import Dense, Floats, Folded, Intervals
from rdeepsense.distributions import Gaussian, Recalibrated, StudentT
from rdeepsense.errors import InputError
from rdeepsense.estimators.rdeepsense import RDeepSense
from rdeepsense.heads import StudentHead
from rdeepsense.heads.gaussian import VARIANCE_FLOOR
from rdeepsense.heads.student import SCALE_FLOOR

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
FLOORS = {"gaussian": VARIANCE_FLOOR, "student": SCALE_FLOOR, "categorical": 0.0}


def fold(estimator: Any, epistemic: str | None = None) -> Folded:
    """The folded form of an RDeepSense estimator whose network is fully connected with ReLU.

    With `epistemic` "laplace" it is that of `predict_dist(X, epistemic="laplace")`.
    """
    if not isinstance(estimator, RDeepSense):
        raise InputError(
            f"a {type(estimator).__name__} takes more than one pass, so it cannot be folded; "
            "accepted: RDeepSenseRegressor, RDeepSenseClassifier"
        )
    check_is_fitted(estimator)
    network = estimator.network_
    head = estimator.fitted_.networks.candidate.likelihood
    modules = _flat(network.body)
    layers = [(w.copy(), b.copy()) for w, b in _dense_layers(modules)]
    layers[0] = (layers[0][0] / estimator.fitted_.inputs.scaler.scale, layers[0][1])
    names = getattr(estimator, "feature_names_in_", None)
    calibration, noise_share = estimator.fitted_.calibration, np.ones(1)
    if epistemic is not None:
        fitted = fitted_epistemic(estimator, epistemic)
        calibration, noise_share = fitted.calibrations[epistemic], fitted.noise_share
        before = _dense_layers(_before_last(modules))
    common: dict[str, Any] = {
        "head": head,
        "centre": estimator.fitted_.inputs.scaler.shift,
        "scale": estimator.fitted_.inputs.scaler.scale,
        "floor": FLOORS[head],
        "features": None if names is None else tuple(str(name) for name in names),
        "feature_units": estimator.fitted_.inputs.units,
        "targets": estimator.fitted_.target.names,
        "target_units": estimator.fitted_.target.units,
        "missing": estimator.missing,
        "calibration": None if calibration is None else type(calibration).__name__.lower(),
        "version": __version__,
        "source": _digest(layers, estimator),
    }
    weight, bias = layers[-1]
    if head == "categorical":
        heat = calibration.factor if isinstance(calibration, Temperature) else 1.0
        layers[-1] = (weight / heat, bias / heat)
        doubt = None if epistemic is None else fold_doubt(estimator, before, len(layers))
        return Folded(
            layers=_frozen(layers), classes=estimator.fitted_.target.classes, doubt=doubt, **common
        )
    target = estimator.fitted_.target_scaler
    assert target is not None
    outputs = len(target.scale)
    weight[:outputs] *= target.scale[:, None]
    bias[:outputs] = bias[:outputs] * target.scale + target.shift
    # What the calibrated distribution says of a centre 0 and a width 1, output by output.
    unit = _unit(network.head, outputs, calibration)
    width = target.scale * (
        calibration.factor if isinstance(calibration, Scale | Isotonic) else 1.0
    )
    doubt = None
    if epistemic is not None:
        base = _unit(network.head, outputs, None)
        doubt = fold_doubt(estimator, before, len(layers), base.std, width)
    return Folded(
        layers=_frozen(layers),
        spread=width * unit.std * np.sqrt(noise_share),
        shift=unit.mean / unit.std,
        # Conformal thresholds are of the plain std.
        intervals=_intervals(unit, estimator.fitted_.conformal if epistemic is None else None),
        doubt=doubt,
        one_output=estimator.fitted_.target.shape == (),
        **common,
    )


def save(folded: Folded, path: str | os.PathLike[str]) -> None:
    """Write the folded model as one safetensors file, whole or not at all."""
    classes = None if folded.classes is None else folded.classes.tolist()
    header = {
        "kind": "folded",
        "head": folded.head,
        "floor": folded.floor,
        "layers": len(folded.layers),
        "classes": classes,
        "class_dtype": None if folded.classes is None else folded.classes.dtype.str,
        "features": folded.features,
        "feature_units": folded.feature_units,
        "targets": folded.targets,
        "target_units": folded.target_units,
        "missing": folded.missing,
        "one_output": folded.one_output,
        "calibration": folded.calibration,
        "version": folded.version,
        "source": folded.source,
    }
    tensors: dict[str, NDArray[Any]] = {"centre": folded.centre, "scale": folded.scale}
    for number, layer in enumerate(folded.layers):
        tensors[f"layer.{number}.weight"] = _smallest(layer.weight)
        tensors[f"layer.{number}.bias"] = _smallest(layer.bias)
    if folded.doubt is not None:
        tensors |= {f"doubt.{k}": _smallest(v) for k, v in vars(folded.doubt).items()}
    if folded.intervals is not None:
        tensors |= {"spread": folded.spread, "shift": folded.shift}  # type: ignore[dict-item]
        tensors |= {f"interval.{k}": v for k, v in vars(folded.intervals).items() if v is not None}
    model_file.write(path, header, tensors)


def _dense_layers(modules: list[nn.Module]) -> list[tuple[Floats, Floats]]:
    """W and b of each layer; layers with no ReLU between them are multiplied out."""
    layers: list[tuple[Floats, Floats]] = []
    rectified = True
    for module in modules:
        if isinstance(module, nn.Linear):
            weight = module.weight.detach().cpu().double().numpy()
            bias = np.zeros(len(weight))
            if module.bias is not None:
                bias = module.bias.detach().cpu().double().numpy()
            if rectified:
                layers.append((weight, bias))
            else:
                before, offset = layers[-1]
                layers[-1] = (weight @ before, weight @ offset + bias)
            rectified = False
        elif isinstance(module, nn.ReLU):
            if not layers:
                raise InputError("the network begins with a ReLU, which cannot be folded")
            rectified = True
        elif not isinstance(module, nn.Dropout | nn.Identity):
            raise InputError(
                f"a network with {type(module).__name__} cannot be folded; accepted: nn.Sequential "
                "of Linear, ReLU, Dropout and Identity"
            )
    for weight, bias in layers:
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise InputError("the network has weights that are not finite")
    return layers


def _before_last(modules: list[nn.Module]) -> list[nn.Module]:
    """What the last Linear layer reads is made of."""
    return modules[: max(k for k, module in enumerate(modules) if isinstance(module, nn.Linear))]


def _flat(module: nn.Module) -> list[nn.Module]:
    # The exact type: a subclass may have a forward of its own.
    if type(module) is nn.Sequential:
        return [inner for part in module for inner in _flat(part)]
    return [module]


def _unit(head: nn.Module, outputs: int, calibration: Any) -> Any:
    """The distribution of centre 0 and width 1 of each output, in its calibrated shape."""
    unit: Any = Gaussian(np.zeros(outputs), 1.0)
    if isinstance(head, StudentHead):
        unit = StudentT(np.zeros(outputs), 1.0, _degrees_of_freedom(head))
    if isinstance(calibration, Isotonic):
        return Recalibrated(unit, calibration.stated, calibration.actual)
    return unit


def _degrees_of_freedom(head: StudentHead) -> Floats:
    with torch.no_grad():
        raw = torch.zeros(1, head.columns, dtype=torch.float64)
        df: Floats = copy.deepcopy(head).cpu().double()(raw).df[0].numpy()
    return df


def _intervals(unit: Any, conformal: Any) -> Intervals:
    low, high = (
        np.array([(unit.interval(c)[side] - unit.mean) / unit.std for c in COVERAGES])
        for side in (0, 1)
    )
    reach = None
    if conformal is not None and len(conformal.labels) == 1:
        reach = np.array([conformal.threshold(c, 1)[0] for c in COVERAGES])
    return Intervals(np.array(COVERAGES), low, high, reach)


def _frozen(layers: list[tuple[Floats, Floats]]) -> tuple[Dense, ...]:
    return tuple(Dense(np.ascontiguousarray(w), np.ascontiguousarray(b)) for w, b in layers)


def _smallest(values: Floats) -> NDArray[Any]:
    """float32 where that keeps every bit, as it does for layers that folding did not touch."""
    narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), values) else values


def _digest(layers: list[tuple[Floats, Floats]], estimator: Any) -> str:
    """SHA-256 of the trained numbers, to tell which model an artefact came from."""
    digest = hashlib.sha256()
    arrays = [array for layer in layers for array in layer]
    for scaler in (estimator.fitted_.inputs.scaler, estimator.fitted_.target_scaler):
        arrays += [] if scaler is None else [scaler.shift, scaler.scale]
    if estimator.fitted_.calibration is not None:
        arrays += list(estimator.fitted_.calibration.arrays().values())
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()
