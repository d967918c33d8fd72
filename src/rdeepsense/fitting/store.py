"""A fitted estimator to a model file and back. Nothing in a file is executed."""

from __future__ import annotations

import math
import os
import platform
from typing import Any

import numpy as np
import sklearn
import torch

from rdeepsense import __version__, model_file
from rdeepsense.calibration import KINDS
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.data import names
from rdeepsense.data.scaling import Scaler
from rdeepsense.epistemic.novelty import Novelty
from rdeepsense.errors import InputError, ModelFileError

# Arguments that belong to the machine a model was fitted on, or that JSON cannot hold.
NOT_KEPT = ("network", "checkpoint", "device", "verbose")


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, whole or not at all."""
    calibration = estimator.calibration_
    header = {
        "kind": "model",
        "estimator": type(estimator).__name__,
        "params": _params(estimator),
        "features": estimator.n_features_in_,
        "input_shape": list(estimator.input_shape_),
        "feature_names": _plain(getattr(estimator, "feature_names_in_", None)),
        "target": estimator._describe_target(),
        **{name: _plain(getattr(estimator, f"{name}_")) for name in names.KEPT},
        "calibration": None if calibration is None else name_of(calibration),
        "training": _plain(estimator.training_),
        "selection": _plain(estimator.selection_),
        "validation_scores": _plain(estimator.validation_scores_),
        "versions": {
            "rdeepsense": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    tensors: model_file.Tensors = {}
    for name, scaler in (("input", estimator.input_scaler_), ("target", estimator.target_scaler_)):
        if scaler is not None:
            tensors |= {f"{name}.shift": scaler.shift, f"{name}.scale": scaler.scale}
    if calibration is not None:
        tensors |= {f"calibration.{k}": v for k, v in calibration.arrays().items()}
    if estimator.conformal_ is not None:
        tensors["conformal.scores"] = estimator.conformal_.scores
        tensors["conformal.group"] = estimator.conformal_.group
        header["conformal_groups"] = list(estimator.conformal_.labels)
    if estimator.novelty_ is not None:
        tensors |= {f"novelty.{k}": v for k, v in vars(estimator.novelty_).items()}
    if len(estimator.kept_rows_[0]):
        tensors["rows.X"], tensors["rows.y"] = estimator.kept_rows_
    estimator._describe_learnt(header, tensors)
    model_file.write(path, header, tensors)


def restore(
    estimator: Any, header: model_file.Header, tensors: model_file.Tensors, network: Any
) -> None:
    """Fill a new estimator with what its file holds."""
    estimator.set_params(**{k: tupled(v) for k, v in header["params"].items()})
    estimator.n_features_in_ = header["features"]
    estimator.input_shape_ = tuple(header.get("input_shape", (header["features"],)))
    if header["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    estimator._restore_target(header["target"])
    estimator.target_names_ = estimator.target_units_ = estimator.feature_units_ = None
    try:
        estimator.describe(**{name: header.get(name) for name in names.KEPT})
    except InputError as error:
        raise ModelFileError(f"the names in the file do not fit the model: {error}") from error
    estimator.input_scaler_ = Scaler(tensors["input.shift"], tensors["input.scale"])
    estimator.target_scaler_ = (
        Scaler(tensors["target.shift"], tensors["target.scale"])
        if "target.shift" in tensors
        else None
    )
    kind = header["calibration"]
    estimator.calibration_ = (
        None if kind is None else KINDS[kind](**under("calibration.", tensors, scalars=True))
    )
    estimator.conformal_ = None
    if "conformal.scores" in tensors:
        estimator.conformal_ = Conformal(
            **under("conformal.", tensors), labels=tuple(header["conformal_groups"])
        )
    density = under("novelty.", tensors)
    estimator.novelty_ = Novelty(**density) if density else None
    estimator.training_ = header["training"]
    estimator.selection_ = header["selection"]
    estimator.validation_scores_ = {
        name: math.nan if value is None else value
        for name, value in header["validation_scores"].items()
    }
    none = (np.empty((0, *estimator.input_shape_)), np.empty(0))
    estimator.kept_rows_ = (tensors.get("rows.X", none[0]), tensors.get("rows.y", none[1]))
    estimator._restore_learnt(header, tensors, network)


def under(prefix: str, tensors: model_file.Tensors, scalars: bool = False) -> dict[str, Any]:
    """The tensors whose names begin so, without the beginning; 0-d ones as numbers if asked."""
    found = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    if not scalars:
        return found
    return {name: t.item() if t.ndim == 0 else t for name, t in found.items()}


def name_of(calibration: Any) -> str:
    """The name that a file has for this kind of calibration."""
    return next(name for name, kind in KINDS.items() if type(calibration) is kind)


def _params(estimator: Any) -> dict[str, Any]:
    params = {k: v for k, v in estimator.get_params(deep=False).items() if k not in NOT_KEPT}
    if not isinstance(params["random_state"], int | np.integer | None):
        params["random_state"] = None  # a generator; the seed drawn from it is in the record
    plain: dict[str, Any] = _plain(params)
    return plain


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


def tupled(value: Any) -> Any:
    """JSON has no tuples; arguments are written with them."""
    return tuple(value) if isinstance(value, list) else value
