"""A fitted estimator to a model file and back. Nothing in a file is executed."""

from __future__ import annotations

import math
import os
import platform
from typing import Any

import numpy as np
import sklearn
import torch
from torch import nn

from rdeepsense import __version__, model_file
from rdeepsense.calibration import KINDS
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.estimators.scaling import Scaler
from rdeepsense.networks import dense
from rdeepsense.recipe import StochasticNetwork, convert

# Arguments that belong to the machine a model was fitted on, or that JSON cannot hold.
NOT_KEPT = ("network", "checkpoint", "device", "verbose")


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, whole or not at all."""
    header = {
        "kind": "model",
        "estimator": type(estimator).__name__,
        "params": _params(estimator),
        "architecture": _architecture(estimator),
        "features": estimator.n_features_in_,
        "feature_names": _plain(getattr(estimator, "feature_names_in_", None)),
        "target": estimator._describe_target(),
        "calibration": _calibration(estimator.calibration_),
        "training": _plain(estimator.training_),
        "validation_scores": _plain(estimator.validation_scores_),
        "versions": {
            "rdeepsense": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    tensors = {f"network.{k}": v.cpu().numpy() for k, v in estimator.network_.state_dict().items()}
    for name, scaler in (("input", estimator.input_scaler_), ("target", estimator.target_scaler_)):
        if scaler is not None:
            tensors |= {f"{name}.shift": scaler.shift, f"{name}.scale": scaler.scale}
    if len(estimator.kept_rows_[0]):
        tensors["rows.X"], tensors["rows.y"] = estimator.kept_rows_
    model_file.write(path, header, tensors)


def restore(
    estimator: Any,
    header: model_file.Header,
    tensors: model_file.Tensors,
    network: nn.Module | None,
) -> None:
    """Fill a new estimator with what its file holds."""
    estimator.set_params(**{k: _tupled(v) for k, v in header["params"].items()}, network=network)
    estimator.n_features_in_ = header["features"]
    if header["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    estimator._restore_target(header["target"])
    estimator.input_scaler_ = Scaler(tensors["input.shift"], tensors["input.scale"])
    estimator.target_scaler_ = (
        Scaler(tensors["target.shift"], tensors["target.scale"])
        if "target.shift" in tensors
        else None
    )
    saved = header["calibration"]
    estimator.calibration_ = None if saved is None else KINDS[saved["kind"]](saved["factor"])
    estimator.training_ = header["training"]
    estimator.validation_scores_ = {
        name: math.nan if value is None else value
        for name, value in header["validation_scores"].items()
    }
    none = (np.empty((0, header["features"])), np.empty(0))
    estimator.kept_rows_ = (tensors.get("rows.X", none[0]), tensors.get("rows.y", none[1]))
    estimator.network_ = _network(header["architecture"], tensors, network)


def _network(
    architecture: dict[str, Any], tensors: model_file.Tensors, network: nn.Module | None
) -> StochasticNetwork:
    """Rebuild the converted network and load its weights."""
    state = {
        name.removeprefix("network."): torch.from_numpy(value.copy())
        for name, value in tensors.items()
        if name.startswith("network.")
    }
    kind = architecture["class"]
    if kind == "dense":
        if network is not None:
            raise InputError("this model has fully-connected layers of its own; leave out network=")
        network = dense(architecture["inputs"], architecture["hidden"], architecture["outputs"])
    elif network is None:
        raise InputError(
            f"this model was trained on a network of your own ({kind}); "
            "load it with rds.load(path, network=...), giving a new instance"
        )
    converted = convert(
        network,
        likelihood=architecture["likelihood"],
        drop_prob=_tupled(architecture["drop_prob"]),
        input_drop_prob=architecture["input_drop_prob"],
        example=torch.zeros(2, architecture["inputs"]).to(next(network.parameters())),
    )
    try:
        converted.load_state_dict(state)
    except RuntimeError as error:
        raise ModelFileError(f"the network does not fit the file's weights: {error}") from error
    return converted.eval()


def _architecture(estimator: Any) -> dict[str, Any]:
    own = estimator.network
    return {
        "class": "dense" if own is None else type(own).__name__,
        "inputs": estimator.n_features_in_,
        "hidden": list(estimator.hidden) if own is None else None,
        "outputs": estimator.network_.head.outputs,
        "likelihood": estimator._likelihood(),
        "drop_prob": _plain(estimator.drop_prob),
        "input_drop_prob": float(estimator.input_drop_prob),
    }


def _params(estimator: Any) -> dict[str, Any]:
    params = {k: v for k, v in estimator.get_params(deep=False).items() if k not in NOT_KEPT}
    if not isinstance(params["random_state"], int | np.integer | None):
        params["random_state"] = None  # a generator; the seed drawn from it is in the record
    plain: dict[str, Any] = _plain(params)
    return plain


def _calibration(calibration: Any) -> dict[str, Any] | None:
    if calibration is None:
        return None
    kind = next(name for name, type_ in KINDS.items() if isinstance(calibration, type_))
    return {"kind": kind, "factor": calibration.factor}


def _plain(value: Any) -> Any:
    """What JSON can hold: numpy's numbers and arrays as Python's, no NaN or infinity."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
