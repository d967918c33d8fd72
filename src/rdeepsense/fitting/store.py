"""A fitted model to a model file and back. Nothing in a file is executed."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from torch import nn

from rdeepsense import __version__, model_file
from rdeepsense.calibration import KINDS, Calibration
from rdeepsense.calibration.conformal import Conformal
from rdeepsense.data.scaling import Scaler
from rdeepsense.dropout import convert
from rdeepsense.epistemic import Laplace
from rdeepsense.epistemic.novelty import Novelty
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.fitting.candidates import Candidate
from rdeepsense.fitting.epistemic import Epistemic
from rdeepsense.fitting.fitted import Fitted, Inputs, Networks
from rdeepsense.fitting.passes import Passes
from rdeepsense.fitting.process import MODELS, Process
from rdeepsense.fitting.records import Selection, TrainingReport
from rdeepsense.fitting.target import Target, target_from_json
from rdeepsense.model_file import Header, Tensors
from rdeepsense.networks import Architecture, Own, architecture_named, name_of

# What older files call things, by the class they belong to.
RENAMED = {"DeepSense": {"turn": "rotation_std"}}


def save(fitted: Fitted, params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a fitted model and the arguments of its estimator, whole or not at all."""
    header: Header = {
        "kind": "model",
        "estimator": fitted.method,
        "params": _plain(params),
        "features": fitted.inputs.shape[-1],
        "input_shape": list(fitted.inputs.shape),
        "feature_names": _plain(fitted.inputs.names),
        "target": fitted.target.to_json(),
        "target_names": _plain(fitted.target.names),
        "target_units": _plain(fitted.target.units),
        "feature_units": _plain(fitted.inputs.units),
        "calibration": _kind(fitted.calibration),
        "training": _plain(fitted.training.to_json()),
        "selection": None if fitted.selection is None else _plain(fitted.selection.to_json()),
        "validation_scores": _plain(fitted.scores),
        "versions": {
            "rdeepsense": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    tensors: Tensors = {}
    for name, scaler in (("input", fitted.inputs.scaler), ("target", fitted.target_scaler)):
        if scaler is not None:
            tensors |= {f"{name}.shift": scaler.shift, f"{name}.scale": scaler.scale}
    if fitted.calibration is not None:
        tensors |= _named("calibration", fitted.calibration.arrays())
    if fitted.conformal is not None:
        tensors["conformal.scores"] = fitted.conformal.scores
        tensors["conformal.group"] = fitted.conformal.group
        header["conformal_groups"] = list(fitted.conformal.labels)
    if fitted.novelty is not None:
        tensors |= _named("novelty", vars(fitted.novelty))
    if len(fitted.kept_rows[0]):
        tensors["rows.X"], tensors["rows.y"] = fitted.kept_rows
    if isinstance(fitted.model, Process):
        header["method"] = fitted.model.method
        arrays = fitted.model.gp.arrays()
        tensors |= _named("gp", {name: value.numpy() for name, value in arrays.items()})
    else:
        _write_networks(fitted, fitted.model, header, tensors)
    if fitted.epistemic is not None:
        _write_epistemic(fitted.epistemic, header, tensors)
    model_file.write(path, header, tensors)


def restore(
    header: Header, tensors: Tensors, passes: Passes | None, network: nn.Module | None
) -> Fitted:
    """Build the model that a file holds; `passes` is None for a Gaussian process."""
    features = header["features"]
    target = target_from_json(header["target"])
    names = header["feature_names"]
    inputs = Inputs(
        tuple(header.get("input_shape", (features,))),
        None if names is None else tuple(names),
        header["params"]["missing"],
        Scaler(tensors["input.shift"], tensors["input.scale"]),
    )
    scaler = None
    if "target.shift" in tensors:
        scaler = Scaler(tensors["target.shift"], tensors["target.scale"])
    conformal = None
    if "conformal.scores" in tensors:
        groups = tuple(header["conformal_groups"])
        conformal = Conformal(**_under("conformal", tensors), labels=groups)
    density = _under("novelty", tensors)
    selection = header["selection"]
    nothing = (np.empty((0, *inputs.shape)), np.empty(0))
    fitted = Fitted(
        header["estimator"],
        inputs,
        target,
        scaler,
        _process(header, tensors, target, network)
        if passes is None
        else _networks(header, tensors, inputs.shape, passes, network),
        _calibration(header["calibration"], _under("calibration", tensors)),
        TrainingReport.from_json(header["training"]),
        Selection.from_json(selection) if selection else None,
        {k: math.nan if v is None else v for k, v in header["validation_scores"].items()},
        (tensors.get("rows.X", nothing[0]), tensors.get("rows.y", nothing[1])),
        _epistemic(header, tensors),
        conformal,
        Novelty(**density) if density else None,
    )
    try:
        return fitted.described(
            *(header.get(name) for name in ("target_names", "target_units", "feature_units"))
        )
    except InputError as error:
        raise ModelFileError(f"the names in the file do not fit the model: {error}") from error


def _write_networks(fitted: Fitted, model: Networks, header: Header, tensors: Tensors) -> None:
    header["architecture"] = {
        "class": name_of(model.architecture),
        "arguments": _plain(model.architecture.arguments()),
        "outputs": fitted.target.outputs,
        "members": len(model.members),
        "likelihood": model.candidate.likelihood,
        "alpha": model.candidate.alpha,
        "drop_prob": model.candidate.drop_prob,
        "input_drop_prob": float(model.input_drop_prob),
    }
    for number, network in enumerate(model.members):
        state = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
        tensors |= _named(f"network.{number}", state)


def _networks(
    header: Header,
    tensors: Tensors,
    shape: tuple[int, ...],
    passes: Passes,
    network: nn.Module | None,
) -> Networks:
    saved = header["architecture"]
    architecture = _architecture(saved, network)
    candidate = Candidate(saved["likelihood"], saved["alpha"], tupled(saved["drop_prob"]))
    members = []
    for number in range(saved["members"]):
        built = architecture.build(shape, saved["outputs"], 0)
        converted = convert(
            built,
            likelihood=candidate.likelihood,
            drop_prob=candidate.drop_prob,
            input_drop_prob=saved["input_drop_prob"],
            example=torch.zeros(2, *shape).to(next(built.parameters())),
        )
        state = _under(f"network.{number}", tensors)
        try:
            converted.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in state.items()})
        except RuntimeError as error:
            raise ModelFileError(f"the network does not fit the file's weights: {error}") from error
        members.append(converted.eval())
    return Networks(tuple(members), candidate, architecture, saved["input_drop_prob"], passes)


def _architecture(saved: dict[str, Any], network: nn.Module | None) -> Architecture:
    name, arguments = saved["class"], saved.get("arguments")
    if name == "dense":  # as files had it before architectures had classes
        name, arguments = "Dense", {"hidden": saved["hidden"]}
    if arguments is None:
        if network is None:
            raise InputError(
                f"this model was trained on a network of your own ({name}); "
                "load it with rds.load(path, network=...), giving a new instance"
            )
        return Own(network)
    if network is not None:
        raise InputError("this model has layers of its own; leave out network=")
    known = architecture_named(name)
    if known is None:
        raise ModelFileError(
            f"the file's architecture {name!r} is unknown here; if it is your own, make it known "
            "with rdeepsense.networks.register before loading"
        )
    renamed = RENAMED.get(name, {})
    return known(**{renamed.get(k, k): tupled(v) for k, v in arguments.items()})


def _process(
    header: Header, tensors: Tensors, target: Target, network: nn.Module | None
) -> Process:
    if network is not None:
        raise InputError("a Gaussian process has no network; leave out network=")
    if header["method"] not in MODELS:
        raise ModelFileError(f"the file's method {header['method']!r} is unknown here")
    arrays = _under("gp", tensors)
    gp = MODELS[header["method"]].restored(
        {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
    )
    return Process(gp, header["method"], target.outputs if target.is_classes else None)


def _write_epistemic(epistemic: Epistemic, header: Header, tensors: Tensors) -> None:
    laplace = epistemic.laplace
    calibrations = epistemic.calibrations
    header["epistemic"] = {
        "prior": laplace.prior,
        "calibrations": {method: _kind(fitted) for method, fitted in calibrations.items()},
    }
    tensors |= {"epistemic.root": laplace.root, "epistemic.ratio": laplace.ratio}
    tensors["epistemic.noise_share"] = epistemic.noise_share
    for method, fitted in calibrations.items():
        if fitted is not None:
            tensors |= _named(f"epistemic.{method}", fitted.arrays())


def _epistemic(header: Header, tensors: Tensors) -> Epistemic | None:
    """Files of the first versions hold nothing of it."""
    if "epistemic" not in header:
        return None
    kept = header["epistemic"]
    laplace = Laplace(tensors["epistemic.root"], tensors["epistemic.ratio"], kept["prior"])
    calibrations = {
        method: _calibration(kind, _under(f"epistemic.{method}", tensors))
        for method, kind in kept["calibrations"].items()
    }
    return Epistemic(laplace, tensors["epistemic.noise_share"], calibrations)


def _kind(calibration: Calibration | None) -> str | None:
    """The name that a file has for a kind of calibration."""
    if calibration is None:
        return None
    return next(name for name, kind in KINDS.items() if type(calibration) is kind)


def _calibration(kind: str | None, arrays: Tensors) -> Calibration | None:
    if kind is None:
        return None
    return KINDS[kind](**{k: v.item() if v.ndim == 0 else v for k, v in arrays.items()})


def _named(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Tensors:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def _under(prefix: str, tensors: Tensors) -> Tensors:
    """The tensors whose names begin so, without the beginning."""
    start = f"{prefix}."
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}


def _plain(value: Any) -> Any:
    """What JSON can hold: numpy's numbers and arrays as Python's, no NaN or infinity."""
    if isinstance(value, Mapping):
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
